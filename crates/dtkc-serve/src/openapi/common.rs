//! What many operations share, said once: keys, refusals, and the path that names its model.

use utoipa::Modify;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{Content, ObjectBuilder, OpenApi, Ref, Required, ResponseBuilder, Type};

/// Answers of every operation that may ask for a key.
const GUARDED: [(&str, &str); 2] =
    [("401", "No key, or a wrong one"), ("429", "This client sends too often, or the queue is full; see Retry-After")];

/// Answers of every operation that reads a body.
const READING: [(&str, &str); 5] = [
    ("400", "The body or the query cannot be read, or does not fit the model"),
    ("408", "The body did not arrive in time"),
    ("413", "More bytes, images or pixels than allowed"),
    ("415", "A content type or encoding that is not understood"),
    ("503", "Starting, stopping, or too much is held in memory; see Retry-After"),
];

/// Adds keys and the refusals that do not depend on the operation.
pub struct Common;

impl Modify for Common {
    fn modify(&self, openapi: &mut OpenApi) {
        let components = openapi.components.get_or_insert_with(Default::default);
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let header = ApiKey::Header(ApiKeyValue::new("x-api-key"));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(header));
        for (path, item) in &mut openapi.paths.paths {
            for operation in operations(item) {
                if is_guarded(path) {
                    guard(operation);
                }
                if operation.request_body.is_some() {
                    refuse(operation, &READING);
                }
            }
        }
    }
}

/// What the description says; `routes` decides, and a test compares.
fn is_guarded(path: &str) -> bool {
    (path.starts_with("/v1/") || path.starts_with("/v2")) && !path.starts_with("/v2/health/")
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post].into_iter().flatten()
}

/// A key is asked for where the service has keys: none, or one of the two ways to send it.
fn guard(operation: &mut Operation) {
    let no_scopes = [""; 0];
    let either = ["bearer", "api_key"].map(|name| SecurityRequirement::new(name, no_scopes));
    operation.security = Some(std::iter::once(SecurityRequirement::default()).chain(either).collect());
    refuse(operation, &GUARDED);
}

fn refuse(operation: &mut Operation, answers: &[(&str, &str)]) {
    for (status, description) in answers {
        let body = Content::new(Some(Ref::from_schema_name("ErrorBody")));
        let response = ResponseBuilder::new().description(*description).content("application/json", body);
        operation.responses.responses.entry((*status).to_owned()).or_insert_with(|| response.build().into());
    }
}

/// Adds `/v1/models/{model}/assign`: the same as `/v1/assign` with the model named in the path.
pub struct PerModel;

impl Modify for PerModel {
    fn modify(&self, openapi: &mut OpenApi) {
        let Some(mut item) = openapi.paths.paths.get("/v1/assign").cloned() else { return };
        for operation in operations(&mut item) {
            operation.summary = Some("Assign images to the clusters of one model.".into());
            operation.description = Some("The same as `/v1/assign` with the model named in the path.".into());
            operation.operation_id = Some("assign_with".into());
            let model = ParameterBuilder::new()
                .name("model")
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some("The model's name"))
                .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
            operation.parameters.get_or_insert_default().insert(0, model.build().into());
            refuse(operation, &[("404", "No model of that name")]);
        }
        openapi.paths.paths.insert("/v1/models/{model}/assign".into(), item);
    }
}
