//! The paths and what answers them, one file per group.

pub mod assign;
pub mod clusters;
pub mod docs;
pub mod edits;
pub mod health;
pub mod models;
pub mod page;
pub mod v2;

use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource, Responder, Route, guard};

use crate::error::ApiError;
use crate::middleware::{access, admit};

/// Registers every path.
///
/// Whoever adds a path adds it to `guarded`: then it asks for a key, counts for the rate limit and checks the host, however
/// its path is spelled. Only what must be open to everybody is named apart.
pub fn routes(config: &mut ServiceConfig) {
    let guarded = web::scope("").wrap(from_fn(access)).configure(guarded).default_service(web::to(not_found));
    let rest = web::scope("").wrap(from_fn(admit)).configure(open).service(guarded);
    config.configure(health).service(rest);
}

/// For machines that watch over the service: never refused.
fn health(config: &mut ServiceConfig) {
    config
        .service(get("/healthz").route(read().to(health::healthz)))
        .service(get("/readyz").route(read().to(health::readyz)))
        .service(get("/metrics").route(read().to(health::metrics)))
        .configure(v2::health);
}

/// Without a key: the page and the documentation, which ask for nothing and change nothing.
fn open(config: &mut ServiceConfig) {
    config
        .service(get("/openapi.json").route(read().to(docs::openapi)))
        .service(get("/docs").route(read().to(docs::redirect)))
        .service(get("/docs/{file:.*}").route(read().to(docs::docs)))
        .configure(page::routes);
}

fn guarded(config: &mut ServiceConfig) {
    config
        .service(post("/v1/assign").route(web::post().to(assign::assign)))
        .service(post("/v1/models/{model}/assign").route(web::post().to(assign::assign_with)))
        .service(get("/v1/models").route(read().to(models::list)))
        .service(get("/v1/models/{model}").route(read().to(models::show)))
        .service(post("/v1/models/{model}/edits").route(web::post().to(edits::edit)))
        .service(post("/v1/models/{model}/reload").route(web::post().to(models::reload)))
        .service(
            Resource::new("/v1/models/{model}/clusters/{cluster}")
                .route(web::put().to(clusters::rename))
                .default_service(web::to(only_put)),
        )
        .configure(v2::routes);
}

/// A path that answers GET and HEAD, with the right answer to every other method.
fn get(path: &str) -> Resource {
    Resource::new(path).default_service(web::to(only_get))
}

/// GET, or HEAD for the same without the content.
fn read() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// The same for POST.
fn post(path: &str) -> Resource {
    Resource::new(path).default_service(web::to(only_post))
}

async fn not_found() -> Result<HttpResponse, ApiError> {
    Err(ApiError::NotFound)
}

async fn only_get(request: HttpRequest) -> impl Responder {
    wrong_method(&request, "GET, HEAD")
}

async fn only_post(request: HttpRequest) -> impl Responder {
    wrong_method(&request, "POST")
}

async fn only_put(request: HttpRequest) -> impl Responder {
    wrong_method(&request, "PUT")
}

fn wrong_method(request: &HttpRequest, allowed: &'static str) -> Result<HttpResponse, ApiError> {
    let method = request.method().as_str().chars().take(20).collect();
    Err(ApiError::MethodNotAllowed { method, allowed })
}
