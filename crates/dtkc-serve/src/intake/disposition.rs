//! What a part of a multipart form is called. Every client has its own idea of file names; none of them is worth a batch.

use actix_web::http::header::{CONTENT_DISPOSITION, HeaderMap};

use super::name::name;

/// The names in a part's `Content-Disposition`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Disposition {
    /// The form field.
    pub field: String,
    /// The file's name, where the part is a file; empty where it has none.
    pub file: Option<String>,
}

impl Disposition {
    /// Reads the header of a part. A name that cannot be decoded has its strange bytes replaced; `filename*` (RFC 8187)
    /// wins over `filename`.
    pub fn of(headers: &HeaderMap) -> Self {
        let header = headers.get(CONTENT_DISPOSITION).map_or(&b""[..], |value| value.as_bytes());
        let mut found = Self::default();
        let (mut plain, mut extended) = (None, None);
        for (key, value) in parameters(header) {
            match key.as_str() {
                "name" => found.field = name(&String::from_utf8_lossy(&value)),
                "filename" => plain = Some(name(&String::from_utf8_lossy(&value))),
                "filename*" => extended = decode_extended(&value).map(|text| name(&text)),
                _ => {}
            }
        }
        found.file = extended.or(plain);
        found
    }
}

/// The parameters behind the first semicolon; values in quotes or bare.
pub fn parameters(header: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = behind(header, b';');
    while !rest.is_empty() {
        let key_end = rest.iter().position(|byte| b"=;".contains(byte)).unwrap_or(rest.len());
        let key = String::from_utf8_lossy(rest[..key_end].trim_ascii()).to_ascii_lowercase();
        if rest.get(key_end) != Some(&b'=') {
            rest = behind(rest, b';');
            continue;
        }
        let value;
        (value, rest) = self::value(rest[key_end + 1..].trim_ascii_start());
        found.push((key, value));
        rest = behind(rest, b';');
    }
    found
}

/// A value and what follows it.
fn value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|&byte| byte == b';').unwrap_or(text.len());
        return (text[..end].trim_ascii().to_vec(), &text[end..]);
    };
    let mut value = Vec::new();
    let mut at = 0;
    while let Some(&byte) = quoted.get(at) {
        at += 1;
        match (byte, quoted.get(at)) {
            (b'"', _) => break,
            // Only quotes and backslashes are written with a backslash before them; others are part of a Windows path.
            (b'\\', Some(&next @ (b'"' | b'\\'))) => {
                value.push(next);
                at += 1;
            }
            _ => value.push(byte),
        }
    }
    (value, &quoted[at..])
}

fn behind(text: &[u8], mark: u8) -> &[u8] {
    text.iter().position(|&byte| byte == mark).map_or(&[], |at| &text[at + 1..])
}

/// `UTF-8'en'na%C3%AFve.png`; `None` for another character set or broken escapes.
fn decode_extended(value: &[u8]) -> Option<String> {
    let (charset, language_and_text) = (value.split(|&byte| byte == b'\'').next()?, behind(value, b'\''));
    let mut encoded = behind(language_and_text, b'\'');
    let mut bytes = Vec::with_capacity(encoded.len());
    while let Some((&first, rest)) = encoded.split_first() {
        encoded = rest;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(encoded.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        encoded = &encoded[2..];
    }
    match charset.to_ascii_lowercase().as_slice() {
        b"utf-8" => String::from_utf8(bytes).ok().filter(|text| !text.is_empty()),
        b"iso-8859-1" => Some(bytes.into_iter().map(char::from).collect()).filter(|text: &String| !text.is_empty()),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn read(header: &[u8]) -> (String, Option<String>) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_bytes(header).unwrap());
        let Disposition { field, file } = Disposition::of(&headers);
        (field, file)
    }

    #[test]
    fn every_spelling_of_a_file_name_is_read() {
        for (header, expected) in [
            (&br#"form-data; name="image"; filename="a.png""#[..], Some("a.png")),
            (b"form-data; name=image; filename=a.png", Some("a.png")),
            (b"form-data;name=\"image\";filename = \"a;b.png\" ", Some("a;b.png")),
            (br#"form-data; name="image"; filename="say \"a\".png""#, Some("say \"a\".png")),
            (br#"form-data; name="image"; filename="C:\photos\a.png""#, Some(r"C:\photos\a.png")),
            ("form-data; name=\"image\"; filename=\"ä.png\"".as_bytes(), Some("ä.png")),
            (b"form-data; name=\"image\"; filename=\"\xe4.png\"", Some("\u{fffd}.png")),
            (
                b"form-data; name=\"image\"; filename*=UTF-8''na%C3%AFve%20a.png; filename=\"x.png\"",
                Some("naïve a.png"),
            ),
            (b"form-data; name=\"image\"; filename=\"x.png\"; filename*=iso-8859-1'en'%A3.png", Some("£.png")),
            (b"form-data; name=\"image\"; filename=\"x.png\"; filename*=utf-8''%ff%fe", Some("x.png")),
            (b"form-data; name=\"image\"; filename=\"x.png\"; filename*=klingon''%41", Some("x.png")),
            (b"form-data; name=\"image\"; filename=\"x.png\"; filename*=utf-8''%4", Some("x.png")),
            (br#"form-data; name="image"; filename="""#, Some("")),
            (br#"form-data; name="image""#, None),
        ] {
            let shown = String::from_utf8_lossy(header).into_owned();
            assert_eq!(read(header), ("image".into(), expected.map(str::to_owned)), "{shown}");
        }
        for odd in [&b""[..], b"form-data", b"form-data; ;;; =; filename", b"form-data; filename=\"open"] {
            read(odd);
        }
        assert_eq!(Disposition::of(&HeaderMap::new()), Disposition::default());
    }
}
