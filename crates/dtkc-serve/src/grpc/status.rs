//! How gRPC says that something went wrong.

use std::fmt::Write;
use std::time::Duration;

use actix_web::ResponseError;
use actix_web::http::StatusCode;

use crate::error::ApiError;

/// Why a call was not served.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// For a reason that HTTP knows, too.
    Api(ApiError),
    /// The service has no such method.
    NoMethod,
    /// The message is compressed.
    Packed,
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl Refusal {
    /// The protocol's number for it.
    pub fn status(&self) -> u16 {
        let Self::Api(error) = self else { return 12 };
        match (error, error.status_code()) {
            (ApiError::ClientGone, _) => 1,
            (_, StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT) => 4,
            (_, StatusCode::NOT_FOUND) => 5,
            (_, StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST) => 7,
            (_, StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYLOAD_TOO_LARGE) => 8,
            (_, StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED) => 9,
            (_, StatusCode::INTERNAL_SERVER_ERROR) => 13,
            (_, StatusCode::SERVICE_UNAVAILABLE) => 14,
            (_, StatusCode::UNAUTHORIZED) => 16,
            _ => 3,
        }
    }

    /// What HTTP would have answered, for the log and the metrics.
    pub fn http_status(&self) -> u16 {
        if let Self::Api(error) = self { error.status_code().as_u16() } else { StatusCode::NOT_IMPLEMENTED.as_u16() }
    }

    /// The stable name.
    pub fn code(&self) -> &str {
        match self {
            Self::Api(error) => error.code(),
            Self::NoMethod => "unknown_method",
            Self::Packed => "unsupported_encoding",
        }
    }

    /// Seconds to wait, where that helps.
    pub fn retry_after(&self) -> Option<u64> {
        if let Self::Api(error) = self { error.retry_after() } else { None }
    }

    /// The sentence as it goes into `grpc-message`: ASCII, everything else as %XX.
    pub fn message(&self) -> String {
        let sentence = match self {
            Self::Api(error) => error.to_string(),
            Self::NoMethod => "there is no such method; call those of inference.GRPCInferenceService".into(),
            Self::Packed => "compressed messages are not offered; send them plain".into(),
        };
        sentence.bytes().fold(String::with_capacity(sentence.len()), |mut text, byte| {
            match byte {
                b'%' | ..=0x1f | 0x7f.. => write!(text, "%{byte:02X}").unwrap_or_default(),
                _ => text.push(char::from(byte)),
            }
            text
        })
    }
}

/// The time that a client gives a call, as in `grpc-timeout: 100m`; `None` where it cannot be read.
pub fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_numbers_that_clients_know() {
        let status = |error: ApiError| Refusal::from(error).status();
        assert_eq!(status(ApiError::UnknownModel("x".into())), 5);
        assert_eq!(status(ApiError::BadTensor("x".into())), 3);
        assert_eq!(status(ApiError::NoKey), 16);
        assert_eq!(status(ApiError::RateLimited { retry_after: 1 }), 8);
        assert_eq!(status(ApiError::BodyTooLarge { limit: 1 }), 8);
        assert_eq!(status(ApiError::Deadline(Duration::ZERO)), 4);
        assert_eq!(status(ApiError::Busy { retry_after: 1 }), 14);
        assert_eq!(status(ApiError::Internal), 13);
        assert_eq!(Refusal::NoMethod.status(), 12);
    }

    #[test]
    fn sentences_are_ascii() {
        let told = Refusal::from(ApiError::UnknownModel("50% ä".into())).message();
        assert!(told.contains("'50%25 %C3%A4'"), "{told}");
    }

    #[test]
    fn times_of_clients_are_read() {
        assert_eq!(timeout("100m"), Some(Duration::from_millis(100)));
        assert_eq!(timeout("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(timeout("99999999S"), Some(Duration::from_secs(99_999_999)));
        for wrong in ["", "m", "1", "1x", "-1S", "123456789S", "1ä", "1.5S"] {
            assert_eq!(timeout(wrong), None, "{wrong}");
        }
    }
}
