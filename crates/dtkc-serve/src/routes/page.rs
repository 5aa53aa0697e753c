//! The page for people: a few files inside the program, nothing from elsewhere.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, IF_NONE_MATCH};
use actix_web::web::ServiceConfig;
use actix_web::{HttpRequest, HttpResponse};
use sha2::{Digest, Sha256};

use super::{get, read};

/// Nothing inline, nothing from elsewhere; pictures are the user's own files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page: path, content type, content.
type File = (&'static str, &'static str, &'static str);

const JS: &str = "text/javascript; charset=utf-8";

const FILES: [File; 11] = [
    ("/", "text/html; charset=utf-8", include_str!("../../page/index.html")),
    ("/page/style.css", "text/css; charset=utf-8", include_str!("../../page/style.css")),
    ("/page/icon.svg", "image/svg+xml", include_str!("../../page/icon.svg")),
    ("/page/app.js", JS, include_str!("../../page/app.js")),
    ("/page/dom.js", JS, include_str!("../../page/dom.js")),
    ("/page/service.js", JS, include_str!("../../page/service.js")),
    ("/page/files.js", JS, include_str!("../../page/files.js")),
    ("/page/sequences.js", JS, include_str!("../../page/sequences.js")),
    ("/page/groups.js", JS, include_str!("../../page/groups.js")),
    ("/page/dialogs.js", JS, include_str!("../../page/dialogs.js")),
    ("/page/table.js", JS, include_str!("../../page/table.js")),
];

/// Registers the files of the page.
pub fn routes(config: &mut ServiceConfig) {
    for file in FILES {
        let tag = format!("\"{}\"", hex(&Sha256::digest(file.2.as_bytes())[..8]));
        let answer = move |request: HttpRequest| {
            let response = serve(&request, file, &tag);
            async move { response }
        };
        config.service(get(file.0).route(read().to(answer)));
    }
}

fn serve(request: &HttpRequest, (_, content_type, content): File, tag: &str) -> HttpResponse {
    let known = request.headers().get(IF_NONE_MATCH).is_some_and(|sent| sent.as_bytes() == tag.as_bytes());
    let mut response = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    // The tag makes asking again cheap, and a new version of the program shows at once.
    response.insert_header((ETAG, tag)).insert_header((CACHE_CONTROL, "no-cache"));
    response.insert_header((CONTENT_SECURITY_POLICY, POLICY)).insert_header(("x-frame-options", "DENY"));
    response.insert_header(("cross-origin-opener-policy", "same-origin"));
    if known { response.finish() } else { response.content_type(content_type).body(content) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::FILES;

    /// A strict policy blocks these silently, so that a slip would only show in a browser.
    #[test]
    fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
        for (path, _, content) in FILES {
            for forbidden in ["style=\"", "onclick=", "<style", "javascript:", "https://", "//cdn", "innerHTML"] {
                assert!(!content.contains(forbidden), "{path} has {forbidden}");
            }
            // The namespace of SVG is a name, not an address that is fetched.
            let addresses = content.matches("http://").count() - content.matches("http://www.w3.org/2000/svg").count();
            assert_eq!(addresses, 0, "{path}");
        }
    }

    #[test]
    fn every_file_that_is_asked_for_exists() {
        for (path, _, content) in FILES {
            for asked in content.split(['"', '\'']).filter(|text| text.starts_with("page/") || text.starts_with("./")) {
                let asked = format!("/{}", asked.replace("./", "page/"));
                assert!(FILES.iter().any(|(known, ..)| *known == asked), "{path} asks for {asked}");
            }
        }
    }
}
