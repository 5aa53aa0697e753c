//! Answers that cannot take all memory: the library reads lists, and what servers say when they refuse, as a whole.

use std::sync::OnceLock;

use async_trait::async_trait;
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
    ReqwestConnector,
};

/// A list of a thousand names; the longest there may be take four MiB.
const MAX_LIST: usize = 64 << 20;
/// What somebody says who refuses.
const MAX_REFUSAL: usize = 1 << 20;

/// Makes clients whose answers are bounded.
#[derive(Debug, Default)]
pub(crate) struct Connector {
    /// The one client of all web servers: their certificates are loaded once.
    shared: Option<&'static OnceLock<HttpClient>>,
}

impl Connector {
    /// Makes one client for everybody who asks with this place.
    pub(crate) fn shared(place: &'static OnceLock<HttpClient>) -> Self {
        Self { shared: Some(place) }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let connect = || Ok(HttpClient::new(Bounded { inner: ReqwestConnector::default().connect(options)? }));
        match self.shared {
            None => connect(),
            Some(place) => match place.get() {
                Some(client) => Ok(client.clone()),
                None => connect().map(|client| place.get_or_init(|| client).clone()),
            },
        }
    }
}

#[derive(Debug)]
struct Bounded {
    inner: HttpClient,
}

#[async_trait]
impl HttpService for Bounded {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let query = request.uri().query().unwrap_or_default();
        let is_list = ["list-type=", "comp=list"].iter().any(|part| query.contains(part));
        let (parts, body) = self.inner.execute(request).await?.into_parts();
        let most = match parts.status.is_success() {
            true if is_list => MAX_LIST,
            // Bytes of objects are counted by whoever reads them.
            true => return Ok(HttpResponse::from_parts(parts, body)),
            false => MAX_REFUSAL,
        };
        let body = Limited::new(body, most).map_err(|error| match error.downcast::<HttpError>() {
            Ok(error) => *error,
            Err(other) => HttpError::new_boxed(HttpErrorKind::Decode, other),
        });
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}
