//! Answers in place of those that the HTTP library gives by itself.
//!
//! To something that is no request it answers with a bare status. Every answer of this service has a sentence, a code
//! and an id, so its bytes are exchanged on the way out.

use actix_web::ResponseError;

use crate::error::ApiError;
use crate::middleware::fresh_id;

/// What goes out instead of an answer of the library.
#[derive(Debug, Default)]
pub struct StandIn {
    bytes: Vec<u8>,
    sent: usize,
}

impl StandIn {
    /// True where `bytes` are an answer of the library that is replaced.
    pub fn replace(&mut self, bytes: &[u8]) -> bool {
        let Some(error) = error_of(bytes) else { return false };
        (self.bytes, self.sent) = (answer(&error), 0);
        true
    }

    /// What is still to be written.
    pub fn waiting(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So much of it was written.
    pub fn took(&mut self, bytes: usize) {
        self.sent += bytes;
    }
}

/// What an answer without content means; `None` where it is another answer.
fn error_of(bytes: &[u8]) -> Option<ApiError> {
    let head = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
    if !head.ends_with("\r\n\r\n") || !head.contains("content-length: 0\r\n") {
        return None;
    }
    match head.strip_prefix("http/1.1 ").or(head.strip_prefix("http/1.0 "))?.get(..3)? {
        "400" => Some(ApiError::NotHttp),
        "408" => Some(ApiError::SlowHead),
        "431" => Some(ApiError::LargeHead),
        _ => None,
    }
}

fn answer(error: &ApiError) -> Vec<u8> {
    let status = error.status_code();
    let body = serde_json::to_string(&error.body()).unwrap_or_default();
    format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nx-request-id: {}\r\nconnection: close\r\n\r\n{body}",
        status.as_u16(),
        status.canonical_reason().unwrap_or_default(),
        body.len(),
        fresh_id(),
    )
    .into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bare_answers_get_a_sentence_and_others_stay() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let mut stand_in = StandIn::default();
        assert!(stand_in.replace(bare));
        let text = String::from_utf8(stand_in.waiting().to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("HTTP/1.1 431 ") && head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["code"], "head_too_large");
        stand_in.took(text.len());
        assert!(stand_in.waiting().is_empty());
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"\xff",
            b"",
        ] {
            assert!(!stand_in.replace(other));
        }
    }
}
