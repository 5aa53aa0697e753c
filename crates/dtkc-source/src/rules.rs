//! What is an item and what is passed over, by name and by first bytes.

use std::path::Path;

/// Which files are items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sought {
    /// Images.
    #[default]
    Images,
    /// Tables of numbers as text, by their extension: nothing else tells them from any other text.
    Tables,
    /// Sounds in WAV files.
    Sounds,
}

impl Sought {
    /// True where the extension is one of these files'.
    pub fn has_extension(self, path: &Path) -> bool {
        let extensions: &[&str] = match self {
            Self::Images => return has_image_extension(path),
            Self::Tables => &["csv", "tsv"],
            Self::Sounds => &["wav", "wave"],
        };
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        extensions.iter().any(|e| extension.eq_ignore_ascii_case(e))
    }

    /// True where the first bytes are those of such a file.
    pub fn is_head(self, head: &[u8]) -> bool {
        match self {
            Self::Images => is_image_head(head),
            Self::Tables => false,
            Self::Sounds => is_sound_head(head),
        }
    }
}

/// First bytes that are enough to know any image format.
pub const HEAD: usize = 64;

/// A name that is longer than any path may be is not worth keeping.
pub const MAX_NAME: usize = 4096;

/// Why something is passed over. It is told, and nothing fails because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// A hidden file or folder, or a shadow that a Mac leaves.
    Hidden,
    /// The extension is that of something else.
    OtherExtension,
    /// No extension, and the first bytes are not those of an item.
    OtherContent,
    /// No extension, and the first bytes cannot be read.
    Unreadable,
    /// A pipe, a socket or a device; in an archive also a link.
    NotAFile,
    /// A link back to a folder that it lies in, or one of very many to the same folder.
    Circle,
    /// A later entry of the archive has the same name.
    Replaced,
    /// The name is too long.
    LongName,
}

impl Reason {
    /// A stable word for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::OtherExtension => "other_extension",
            Self::OtherContent => "other_content",
            Self::Unreadable => "unreadable",
            Self::NotAFile => "not_a_file",
            Self::Circle => "circle",
            Self::Replaced => "replaced",
            Self::LongName => "long_name",
        }
    }

    /// The reason for people, as a clause.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Hidden => "it is hidden",
            Self::OtherExtension => "its extension is that of something else",
            Self::OtherContent => "it has no extension, and its content is something else",
            Self::Unreadable => "it has no extension, and its content cannot be read",
            Self::NotAFile => "it is not a file of its own (a link in an archive, a pipe or a device)",
            Self::Circle => "it is a link back to a folder that it lies in, or one of very many to the same folder",
            Self::Replaced => "a later entry has the same name",
            Self::LongName => "its name is too long",
        }
    }
}

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is an item.
    Take,
    /// It has no extension: the first bytes decide.
    Look,
    /// It is passed over.
    Pass(Reason),
}

/// Judges the name of a file below an input; folders are parted by `/`.
pub fn judge(name: &str, sought: Sought) -> Verdict {
    if name.len() > MAX_NAME {
        return Verdict::Pass(Reason::LongName);
    }
    if name.split('/').any(|part| is_hidden(part.as_bytes())) {
        return Verdict::Pass(Reason::Hidden);
    }
    judge_last(name, sought)
}

/// The same for a name whose folders were judged before.
pub(crate) fn judge_last(name: &str, sought: Sought) -> Verdict {
    let extension = Path::new(name).extension().filter(|e| !e.is_empty());
    match extension {
        None => Verdict::Look,
        Some(_) if sought.has_extension(Path::new(name)) => Verdict::Take,
        Some(_) => Verdict::Pass(Reason::OtherExtension),
    }
}

/// Whether one part of a path is hidden. `.` and `..` are ways, not names.
pub(crate) fn is_hidden(part: &[u8]) -> bool {
    part == b"__MACOSX" || (part.starts_with(b".") && part != b"." && part != b"..")
}

/// True where the extension is one of an image format that we read, or that phones write: whoever reads those tells why it
/// cannot, and no photo is passed over in silence.
pub fn has_image_extension(path: &Path) -> bool {
    const READ: [&str; 15] =
        ["png", "jpg", "jpeg", "jpe", "jfif", "gif", "bmp", "webp", "tif", "tiff", "pnm", "pbm", "pgm", "ppm", "pam"];
    const PHONES: [&str; 4] = ["heic", "heif", "hif", "avif"];
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    READ.iter().chain(&PHONES).any(|e| extension.eq_ignore_ascii_case(e))
}

/// True where the first bytes are those of an image format that we read, or that phones write. Formats with short marks are asked for more,
/// because a text may begin with `BM` or `P1`, too.
pub fn is_image_head(head: &[u8]) -> bool {
    let starts: [&[u8]; 6] = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*"];
    let webp = head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP");
    webp || starts.iter().any(|s| head.starts_with(s)) || is_bmp(head) || is_pnm(head) || is_phones(head)
}

/// HEIC and AVIF: a box of brands at the beginning.
fn is_phones(head: &[u8]) -> bool {
    const BRANDS: [&[u8; 4]; 10] =
        [b"avif", b"avis", b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"];
    head.get(4..8) == Some(b"ftyp") && head.get(8..12).is_some_and(|brand| BRANDS.iter().any(|known| brand == *known))
}

/// True where the first bytes are those of a WAV file.
pub fn is_sound_head(head: &[u8]) -> bool {
    head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WAVE")
}

/// `BM`, and after twelve bytes the size of one of the headers that there are.
fn is_bmp(head: &[u8]) -> bool {
    let size = head.get(14..18).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    head.starts_with(b"BM") && matches!(size, Some(12 | 16 | 40 | 52 | 56 | 64 | 108 | 124))
}

/// `P1` to `P6`, space, and a number or a comment; `P7` and a new line.
fn is_pnm(head: &[u8]) -> bool {
    let [b'P', kind, rest @ ..] = head else { return false };
    if *kind == b'7' {
        return rest.starts_with(b"\n") || rest.starts_with(b"\r\n");
    }
    let text = rest.trim_ascii_start();
    let spaced = text.len() < rest.len() || rest.starts_with(b"#");
    matches!(kind, b'1'..=b'6') && spaced && text.first().is_some_and(|c| c.is_ascii_digit() || *c == b'#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_folder_and_extension() {
        for name in ["a.png", "x/a.JPG", "./a.webp", "../x/a.tif", "a.b.jpeg", "IMG_1.HEIC"] {
            assert_eq!(judge(name, Sought::Images), Verdict::Take, "{name}");
        }
        for name in ["0003", "x/README", "png", "a."] {
            assert_eq!(judge(name, Sought::Images), Verdict::Look, "{name}");
        }
        for name in ["a.txt", "a.png.gz", "x.d/a.cls"] {
            assert_eq!(judge(name, Sought::Images), Verdict::Pass(Reason::OtherExtension), "{name}");
        }
        for name in ["._a.png", "x/.thumbs/a.png", "__MACOSX/a.png", "x/__MACOSX/a.png", ".png", ".hidden"] {
            assert_eq!(judge(name, Sought::Images), Verdict::Pass(Reason::Hidden), "{name}");
        }
        assert_eq!(judge(&"x".repeat(MAX_NAME + 1), Sought::Images), Verdict::Pass(Reason::LongName));
    }

    #[test]
    fn heads_of_images_are_known() {
        let bmp = |size: u8| [b"BM".as_slice(), &[0; 12], &[size, 0, 0, 0]].concat();
        for head in [
            b"\x89PNG\r\n\x1a\n".as_slice(),
            b"\xff\xd8\xff\xe0",
            b"GIF89a",
            b"GIF87a",
            b"II*\0",
            b"MM\0*",
            b"RIFF\x01\x02\0\0WEBP",
            b"P5\n3 3",
            b"P2 # made by hand",
            b"P4#x\n",
            b"P7\nWIDTH 3",
            b"\0\0\0\x1cftypheic\0\0\0\0",
            b"\0\0\0\x1cftypmif1",
            &bmp(40),
        ] {
            assert!(is_image_head(head), "{head:?}");
        }
        for head in [
            b"".as_slice(),
            b"RIFF\0\0\0\0WAVE",
            b"PK\x03\x04",
            b"P8 1",
            b"\0\0\0\x1cftypisom",
            b"P1 is a plan",
            b"P5",
            b"BM, a firm from Bavaria",
            &bmp(41),
            b"<html>",
        ] {
            assert!(!is_image_head(head), "{head:?}");
        }
    }

    #[test]
    fn other_files_can_be_sought() {
        assert_eq!(judge("a/b.CSV", Sought::Tables), Verdict::Take);
        assert_eq!(judge("a/b.png", Sought::Tables), Verdict::Pass(Reason::OtherExtension));
        assert_eq!((judge("a.wav", Sought::Sounds), judge("a", Sought::Sounds)), (Verdict::Take, Verdict::Look));
        assert!(Sought::Sounds.is_head(b"RIFF\x01\x02\0\0WAVEfmt ") && !Sought::Sounds.is_head(b"RIFF\0\0\0\0WEBP"));
        assert!(!Sought::Tables.is_head(b"1,2,3") && Sought::Images.is_head(b"GIF89a"));
    }

    #[test]
    fn reasons_have_words_of_their_own() {
        use Reason::*;
        let all = [Hidden, OtherExtension, OtherContent, Unreadable, NotAFile, Circle, Replaced, LongName];
        let codes: std::collections::BTreeSet<&str> = all.iter().map(|r| r.code()).collect();
        assert_eq!(codes.len(), all.len());
        assert!(all.iter().all(|r| r.text().starts_with("it") || r.text().starts_with("a later")));
    }
}
