//! The OpenAPI description and a page to read and try it.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, LOCATION};
use actix_web::web::Path;
use utoipa_swagger_ui::Config;

use crate::error::ApiError;
use crate::openapi;
use crate::pieces::Pieces;

/// Swagger UI sets styles from its script and has its icons inline; everything still comes from here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// The description.
pub async fn openapi() -> Result<HttpResponse, ApiError> {
    static TEXT: LazyLock<Option<String>> = LazyLock::new(|| openapi::json().ok());
    let text = TEXT.as_deref().ok_or(ApiError::Internal)?;
    Ok(HttpResponse::Ok().content_type("application/json").body(Pieces::of_program(text)))
}

/// The page's relative links need the slash.
pub async fn redirect() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((LOCATION, "docs/")).finish()
}

/// A file of the page.
pub async fn docs(file: Path<String>) -> Result<HttpResponse, ApiError> {
    static CONFIG: LazyLock<Arc<Config<'static>>> = LazyLock::new(|| {
        // No validator badge: it would ask a server on the internet.
        let config = Config::from("../openapi.json").validator_url("none").default_model_expand_depth(2);
        Arc::new(config.display_request_duration(true).use_base_layout())
    });
    let found = utoipa_swagger_ui::serve(&file, CONFIG.clone()).map_err(|_| ApiError::Internal)?;
    let found = found.ok_or(ApiError::NotFound)?;
    let mut response = HttpResponse::Ok();
    if found.gzpipped {
        response.insert_header((CONTENT_ENCODING, "gzip"));
    }
    response.insert_header((CONTENT_SECURITY_POLICY, POLICY)).content_type(found.content_type);
    Ok(response.body(match found.bytes {
        Cow::Borrowed(bytes) => Pieces::of_program(bytes),
        Cow::Owned(bytes) => Pieces::of_program(bytes),
    }))
}
