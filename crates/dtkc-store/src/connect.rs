//! From an address to a store, with credentials from the environment that people have already.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::client::HttpClient;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{ClientConfigKey, ClientOptions, ObjectStore};
use url::Url;

use crate::StoreError;
use crate::address::{Address, Scheme, is_loopback};
use crate::bounded::Connector;
use crate::error::no_credentials;
use crate::profile::Profile;
use crate::settings::{self, Purpose, is_on};

/// A store that was connected to.
pub(crate) type Store = Arc<dyn ObjectStore>;

/// Where machines in a cloud ask who they are.
const METADATA: ([u8; 4], u16) = ([169, 254, 169, 254], 80);

/// The store of an address. There is one for each bucket and purpose.
pub(crate) fn store(address: &Address, purpose: Purpose) -> Result<Store, StoreError> {
    type Key = (Scheme, String, Purpose);
    static STORES: Mutex<Option<HashMap<Key, Store>>> = Mutex::new(None);
    if address.scheme == Scheme::Web {
        return web(address, purpose);
    }
    let key = (address.scheme, address.bucket.clone(), purpose);
    // Two who connect at the same moment get two; that costs nothing but a moment.
    let known = |stores: &mut Option<HashMap<Key, Store>>| stores.get_or_insert_default().get(&key).cloned();
    if let Some(store) = known(&mut STORES.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(store);
    }
    let store = match address.scheme {
        Scheme::S3 => s3(address, purpose)?,
        Scheme::Google => google(address, purpose)?,
        _ => azure(address, purpose)?,
    };
    STORES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(key, store.clone());
    Ok(store)
}

/// Limits in time, as settings that leave the rest of the environment as it is.
fn limits(purpose: Purpose) -> Vec<(ClientConfigKey, String)> {
    encrypt();
    let text = |time: Duration| format!("{} seconds", time.as_secs());
    let mut limits = vec![
        (ClientConfigKey::ConnectTimeout, text(settings::CONNECT)),
        (ClientConfigKey::Timeout, text(settings::REQUEST)),
    ];
    limits.extend(purpose.silence().map(|silence| (ClientConfigKey::ReadTimeout, text(silence))));
    limits
}

/// One library for TLS in all of the program.
fn encrypt() {
    static ONCE: Once = Once::new();
    // Somebody may have chosen one before.
    ONCE.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

fn s3(address: &Address, purpose: Purpose) -> Result<Store, StoreError> {
    let mut builder = amazon().with_bucket_name(&address.bucket);
    let has = |builder: &AmazonS3Builder, key: AmazonS3ConfigKey| builder.get_config_value(&key).is_some();
    if has(&builder, AmazonS3ConfigKey::AccessKeyId) != has(&builder, AmazonS3ConfigKey::SecretAccessKey) {
        return Err(StoreError::other(no_credentials(Scheme::S3)));
    }
    let given = [
        AmazonS3ConfigKey::AccessKeyId,
        AmazonS3ConfigKey::WebIdentityTokenFile,
        AmazonS3ConfigKey::ContainerCredentialsRelativeUri,
        AmazonS3ConfigKey::ContainerCredentialsFullUri,
    ];
    let anonymous = is_on("AWS_SKIP_SIGNATURE");
    let profile = Profile::of_environment();
    if let Some(region) = profile.region.filter(|_| !has(&builder, AmazonS3ConfigKey::Region)) {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = profile.endpoint.filter(|_| !has(&builder, AmazonS3ConfigKey::Endpoint)) {
        builder = builder.with_endpoint(endpoint);
    }
    if !anonymous && !given.into_iter().any(|key| has(&builder, key)) {
        match (profile.key_id, profile.secret) {
            (Some(id), Some(secret)) => {
                builder = builder.with_access_key_id(id).with_secret_access_key(secret);
                builder = profile.token.into_iter().fold(builder, AmazonS3Builder::with_token);
            }
            _ if !in_cloud("AWS_METADATA_ENDPOINT") => {
                return Err(StoreError::other(no_credentials(Scheme::S3)));
            }
            _ => {}
        }
    }
    let endpoint =
        std::env::var("AWS_ENDPOINT_URL_S3").ok().or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
    if endpoint.and_then(|text| Url::parse(&text).ok()).is_some_and(|url| is_loopback(&url)) {
        builder = builder.with_allow_http(true);
    }
    for (key, value) in limits(purpose) {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    let built = builder.with_retry(purpose.retry()).with_http_connector(Connector::default()).build();
    Ok(Arc::new(built.map_err(|error| unbuilt(address, &error))?))
}

/// What the environment says; unlike the library's own, a variable that is empty says nothing.
fn amazon() -> AmazonS3Builder {
    let texts =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let said = texts.filter(|(name, value)| name.starts_with("AWS_") && !value.is_empty());
    said.fold(AmazonS3Builder::new(), |builder, (name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) => builder.with_config(key, value),
        Err(_) => builder,
    })
}

fn google(address: &Address, purpose: Purpose) -> Result<Store, StoreError> {
    let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&address.bucket);
    let given = ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY"];
    let given = given.into_iter().chain(["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_BEARER_TOKEN"]);
    let login = std::env::home_dir().map(|home| home.join(".config/gcloud/application_default_credentials.json"));
    let found =
        is_on("GOOGLE_SKIP_SIGNATURE") || given.into_iter().any(is_set) || login.is_some_and(|path| path.exists());
    if !found && !in_cloud("GCE_METADATA_HOST") {
        return Err(StoreError::other(no_credentials(Scheme::Google)));
    }
    let base = std::env::var("GOOGLE_BASE_URL").ok().and_then(|text| Url::parse(&text).ok());
    if base.is_some_and(|url| is_loopback(&url)) {
        builder = builder.with_config(GoogleConfigKey::Client(ClientConfigKey::AllowHttp), "true");
    }
    for (key, value) in limits(purpose) {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    let built = builder.with_retry(purpose.retry()).with_http_connector(Connector::default()).build();
    Ok(Arc::new(built.map_err(|error| unbuilt(address, &error))?))
}

fn azure(address: &Address, purpose: Purpose) -> Result<Store, StoreError> {
    let mut builder = MicrosoftAzureBuilder::from_env().with_container_name(&address.bucket);
    let emulator = is_on("AZURE_STORAGE_USE_EMULATOR");
    let account = builder.get_config_value(&AzureConfigKey::AccountName).is_some();
    if !emulator && !account && builder.get_config_value(&AzureConfigKey::Endpoint).is_none() {
        return Err(StoreError::other(no_credentials(Scheme::Azure)));
    }
    let given = [
        AzureConfigKey::AccessKey,
        AzureConfigKey::SasKey,
        AzureConfigKey::Token,
        AzureConfigKey::ClientId,
        AzureConfigKey::FederatedTokenFile,
    ];
    let found = emulator
        || given.into_iter().any(|key| builder.get_config_value(&key).is_some())
        || ["AZURE_SKIP_SIGNATURE", "AZURE_USE_AZURE_CLI"].into_iter().any(is_on);
    if !found && !in_cloud("AZURE_IDENTITY_ENDPOINT") {
        return Err(StoreError::other(no_credentials(Scheme::Azure)));
    }
    for (key, value) in limits(purpose) {
        builder = builder.with_config(AzureConfigKey::Client(key), value);
    }
    let built = builder.with_retry(purpose.retry()).with_http_connector(Connector::default()).build();
    Ok(Arc::new(built.map_err(|error| unbuilt(address, &error))?))
}

/// A file on a web server: its own store, with an empty name in it, so that the address goes out as it came in.
fn web(address: &Address, purpose: Purpose) -> Result<Store, StoreError> {
    static CLIENTS: [[OnceLock<HttpClient>; 2]; 3] = [const { [const { OnceLock::new() }; 2] }; 3];
    if purpose == Purpose::Write {
        return Err(StoreError::other("nothing is written to web servers; write to s3://, gs://, az:// or to a file"));
    }
    // An address that begins with https is never led to plain http.
    let plain = address.bucket.starts_with("http:");
    let mut options = ClientOptions::new().with_allow_http(plain);
    for (key, value) in limits(purpose) {
        options = options.with_config(key, value);
    }
    let place = &CLIENTS[purpose as usize][usize::from(plain)];
    let built = HttpBuilder::new()
        .with_url(&address.bucket)
        .with_client_options(options)
        .with_retry(purpose.retry())
        .with_http_connector(Connector::shared(place))
        .build();
    Ok(Arc::new(built.map_err(|error| unbuilt(address, &error))?))
}

fn unbuilt(address: &Address, error: &object_store::Error) -> StoreError {
    let said = StoreError::of(address, error).to_string();
    StoreError::other(format!("the settings in the environment do not do: {said}"))
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Whether there is somebody to ask who this machine is: there is in clouds, and nowhere else. One short look spares people a
/// long wait for what is only a missing variable.
fn in_cloud(elsewhere: &str) -> bool {
    static IN_CLOUD: OnceLock<bool> = OnceLock::new();
    if is_on("AWS_EC2_METADATA_DISABLED") {
        return false;
    }
    is_set(elsewhere)
        || *IN_CLOUD
            .get_or_init(|| TcpStream::connect_timeout(&SocketAddr::from(METADATA), Duration::from_secs(1)).is_ok())
}
