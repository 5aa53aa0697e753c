//! The paths and what answers them, one file per group.

pub mod assign;
pub mod clusters;
pub mod docs;
pub mod health;
pub mod models;
pub mod page;
pub mod v2;

use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Resource, Responder};

use crate::error::ApiError;

/// Registers every path.
pub fn routes(config: &mut ServiceConfig) {
    config
        .service(post("/v1/assign").route(web::post().to(assign::assign)))
        .service(post("/v1/models/{model}/assign").route(web::post().to(assign::assign_with)))
        .service(get("/v1/models").route(web::get().to(models::list)))
        .service(get("/v1/models/{model}").route(web::get().to(models::show)))
        .service(post("/v1/models/{model}/reload").route(web::post().to(models::reload)))
        .service(
            Resource::new("/v1/models/{model}/clusters/{cluster}")
                .route(web::put().to(clusters::rename))
                .default_service(web::to(only_put)),
        )
        .configure(v2::routes)
        .service(get("/healthz").route(web::get().to(health::healthz)))
        .service(get("/readyz").route(web::get().to(health::readyz)))
        .service(get("/metrics").route(web::get().to(health::metrics)))
        .service(get("/openapi.json").route(web::get().to(docs::openapi)))
        .service(get("/docs").route(web::get().to(docs::redirect)))
        .service(get("/docs/{file:.*}").route(web::get().to(docs::docs)))
        .configure(page::routes)
        .default_service(web::to(not_found));
}

/// A path that answers GET, with the right answer to every other method.
fn get(path: &str) -> Resource {
    Resource::new(path).default_service(web::to(only_get))
}

/// The same for POST.
fn post(path: &str) -> Resource {
    Resource::new(path).default_service(web::to(only_post))
}

async fn not_found() -> Result<HttpResponse, ApiError> {
    Err(ApiError::NotFound)
}

async fn only_get(request: HttpRequest) -> impl Responder {
    wrong_method(&request, "GET")
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
