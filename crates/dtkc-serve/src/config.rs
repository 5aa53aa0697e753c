//! Everything that can be set: one struct, filled from flags and `DTKC_*` variables.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use dtkc_cli::Usage;
use dtkc_infer::Device;

use crate::rate::Rate;

const EXAMPLES: &str = "\
Examples:
  dtkc-serve                                      the bundled MNIST model on http://127.0.0.1:8080
  dtkc-serve --model runs/shoes/model.onnx        a model of your own, named 'model'
  dtkc-serve --model mnist --model shoes=runs/shoes/model.onnx --port 9000
  DTKC_API_KEY=long-secret dtkc-serve --host 0.0.0.0 --rate-limit 50 --log-format json
  dtkc-serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem

Then, with an image at hand:
  curl -F image=@digit.png http://127.0.0.1:8080/v1/assign
  curl -H 'content-type: application/zip' --data-binary @images.zip 'http://127.0.0.1:8080/v1/assign?top_k=3'

Every flag can also be given as the environment variable named in its description; a flag wins.
SIGTERM stops after the accepted requests are answered; SIGHUP loads changed model files.";

/// As many of the largest images may come in one request, or more smaller ones.
const REQUEST_FACTOR: u64 = 16;

/// Sorts images into the clusters of a trained model, over HTTP, with a web page.
#[derive(Debug, Clone, Parser)]
#[command(name = "dtkc-serve", version, after_help = EXAMPLES)]
pub struct ServeConfig {
    /// A model to serve: `mnist`, `glyphs`, a path, or NAME=PATH; give it several times (in the variable: separated
    /// by commas) for several models. The first one is the default model
    #[arg(long, value_name = "NAME|PATH", env = "DTKC_MODEL", value_delimiter = ',', default_value = "mnist")]
    pub model: Vec<String>,

    /// Address to listen on; 0.0.0.0 for every network of this machine
    #[arg(long, env = "DTKC_HOST", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub host: IpAddr,

    /// Port to listen on; 0 takes a free one and prints it
    #[arg(long, env = "DTKC_PORT", default_value_t = 8080)]
    pub port: u16,

    /// Port for the inference protocol over gRPC, beside HTTP; 0 takes a free one and prints it [default: none]
    #[cfg(feature = "grpc")]
    #[arg(long, value_name = "PORT", env = "DTKC_GRPC_PORT")]
    pub grpc_port: Option<u16>,

    /// Threads per model that decode and infer, each with a session of its own [default: one per core]
    #[arg(long, value_name = "N", env = "DTKC_WORKERS")]
    pub workers: Option<usize>,

    /// Most images in one inference call
    #[arg(long, value_name = "IMAGES", env = "DTKC_MAX_BATCH", default_value_t = 32)]
    pub max_batch: usize,

    /// Most images that wait per model; a request that would exceed it is answered 429. A client that has none waiting
    /// may exceed it by a quarter
    #[arg(long, value_name = "IMAGES", env = "DTKC_MAX_QUEUE", default_value_t = 1024)]
    pub max_queue: usize,

    /// How long a worker waits for a fuller batch. With 0 a batch starts at once with what is there, and the next
    /// one collects while it runs
    #[arg(long, value_name = "MS", env = "DTKC_MAX_WAIT_MS", default_value_t = 0)]
    pub max_wait_ms: u64,

    /// Largest request body, also after decompression
    #[arg(long, value_name = "SIZE", env = "DTKC_MAX_BODY", default_value = "32MiB", value_parser = dtkc_human::parse_bytes)]
    pub max_body: u64,

    /// Request bodies, what is read out of them, and answers, held in memory at one time; more are answered 503. Several
    /// requests of one client leave a quarter of it to others
    #[arg(long, value_name = "SIZE", env = "DTKC_MAX_BUFFERED", default_value = "512MiB", value_parser = dtkc_human::parse_bytes)]
    pub max_buffered: u64,

    /// Most pixels of one image, checked before it is decoded
    #[arg(long, value_name = "PIXELS", env = "DTKC_MAX_IMAGE_PIXELS", default_value_t = 64 << 20)]
    pub max_image_pixels: u64,

    /// Most pixels of all images in one request, each pass of a progressive JPEG over its picture counted; images beyond
    /// that fail alone [default: 16 times --max-image-pixels]
    #[arg(long, value_name = "PIXELS", env = "DTKC_MAX_REQUEST_PIXELS")]
    pub max_request_pixels: Option<u64>,

    /// Most steps of one sequence; a longer one fails alone. A worker's memory goes with it (2 KiB a step in the paper's
    /// network)
    #[arg(long, value_name = "STEPS", env = "DTKC_MAX_STEPS", default_value_t = 16_384, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_steps: u32,

    /// Most images or sequences in one request [default: 1000, or --max-queue where that is less]
    #[arg(long, value_name = "IMAGES", env = "DTKC_MAX_IMAGES")]
    pub max_images: Option<usize>,

    /// A request that is not answered by then gets 504; one whose body has not arrived by then gets 408; a client that
    /// reads nothing of its answer for so long is cut off
    #[arg(long, value_name = "TIME", env = "DTKC_REQUEST_TIMEOUT", default_value = "30s", value_parser = dtkc_human::parse_duration)]
    pub request_timeout: Duration,

    /// After SIGTERM, how long accepted requests may take to finish
    #[arg(long, value_name = "TIME", env = "DTKC_STOP_TIMEOUT", default_value = "30s", value_parser = dtkc_human::parse_duration)]
    pub stop_timeout: Duration,

    /// After SIGTERM, how long requests are still taken while /readyz says to send none: time for load balancers to notice
    #[arg(long, value_name = "TIME", env = "DTKC_DRAIN", default_value = "1s", value_parser = dtkc_human::parse_duration)]
    pub drain: Duration,

    /// Most connections in all; a few more are taken for health checks
    #[arg(long, value_name = "N", env = "DTKC_MAX_CONNECTIONS", default_value_t = 1024)]
    pub max_connections: usize,

    /// Most connections of one client (an IPv4 address, an IPv6 network); trusted proxies have no such limit
    #[arg(long, value_name = "N", env = "DTKC_MAX_CLIENT_CONNECTIONS", default_value_t = 256)]
    pub max_client_connections: usize,

    /// Name under which this service may be asked, beside loopback names and its own address; * for all. Others are
    /// answered 421: a page of another site could use a name of its own to get in. Repeatable
    #[arg(long, value_name = "NAME", env = "DTKC_ALLOWED_HOST", value_delimiter = ',')]
    pub allowed_host: Vec<String>,

    /// Address of a reverse proxy whose X-Forwarded-For is believed, so that limits count its clients; repeatable
    #[arg(long, value_name = "ADDRESS", env = "DTKC_TRUSTED_PROXY", value_delimiter = ',')]
    pub trusted_proxy: Vec<IpAddr>,

    /// Key that clients must send as `Authorization: Bearer KEY` or `X-API-Key: KEY`; several are allowed. Flags are
    /// visible in the process list: prefer the variable or --api-key-file
    #[arg(long, value_name = "KEY", env = "DTKC_API_KEY", hide_env_values = true, value_delimiter = ',')]
    pub api_key: Vec<String>,

    /// File with one key per line; empty lines and lines that start with # are skipped
    #[arg(long, value_name = "FILE", env = "DTKC_API_KEY_FILE")]
    pub api_key_file: Option<PathBuf>,

    /// Requests per client (key, or address without a key), as 50 or 50/s, 600/m, 1000/h; the same number may come
    /// at once [default: no limit]
    #[arg(long, value_name = "RATE", env = "DTKC_RATE_LIMIT")]
    pub rate_limit: Option<Rate>,

    /// Wrong keys per address, in the same form; whoever sends more is not listened to for a while
    #[arg(long, value_name = "RATE", env = "DTKC_WRONG_KEY_LIMIT", default_value = "20/m")]
    pub wrong_key_limit: Rate,

    /// Web page origin that may call the service from a browser, as `https://example.org`, or * for all; repeatable
    #[arg(long, value_name = "ORIGIN", env = "DTKC_CORS", value_delimiter = ',')]
    pub cors: Vec<String>,

    /// Form of the log on standard error
    #[arg(long, env = "DTKC_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// What is logged: error, warn, info, debug, or a tracing filter
    #[arg(long, value_name = "LEVEL", env = "DTKC_LOG_LEVEL", default_value = "info")]
    pub log_level: String,

    /// Where inference runs
    #[arg(long, env = "DTKC_DEVICE", default_value = "cpu")]
    pub device: Device,

    /// The ONNX Runtime library, where it is not found by itself
    #[arg(long, value_name = "FILE", env = "DTKC_ONNXRUNTIME")]
    pub onnxruntime: Option<PathBuf>,

    /// Folder for the names given to clusters [default: beside the model file]
    #[arg(long, value_name = "FOLDER", env = "DTKC_STATE_DIR")]
    pub state_dir: Option<PathBuf>,

    /// Let clients merge and split clusters, and take that back, in the model files themselves
    #[arg(long, env = "DTKC_ALLOW_EDITS", value_parser = clap::builder::BoolishValueParser::new())]
    pub allow_edits: bool,

    /// Certificate chain (PEM) for HTTPS
    #[arg(long, value_name = "FILE", env = "DTKC_TLS_CERT", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", env = "DTKC_TLS_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Threads that handle connections [default: one per two cores, at most 8]
    #[arg(long, value_name = "N", env = "DTKC_HTTP_THREADS")]
    pub http_threads: Option<usize>,

    /// Print the OpenAPI description and end
    #[arg(long)]
    pub openapi: bool,
}

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl ServeConfig {
    /// Refuses values that cannot work, before anything is opened.
    pub fn check(&self) -> Result<(), Usage> {
        positive("--workers", self.workers)?;
        #[cfg(feature = "grpc")]
        if self.port != 0 && self.grpc_port == Some(self.port) {
            return usage("--grpc-port is the same as --port; choose another one");
        }
        positive("--http-threads", self.http_threads)?;
        positive("--max-batch", Some(self.max_batch))?;
        positive("--max-queue", Some(self.max_queue))?;
        positive("--max-images", self.max_images)?;
        positive("--max-connections", Some(self.max_connections))?;
        positive("--max-client-connections", Some(self.max_client_connections))?;
        at_most("--max-connections", self.max_connections, 1_000_000)?;
        positive("--max-image-pixels", Some(self.max_image_pixels as usize))?;
        if self.max_request_pixels.is_some_and(|pixels| pixels < self.max_image_pixels) {
            return usage(
                "--max-request-pixels is less than --max-image-pixels, so the largest image could never be accepted; raise it",
            );
        }
        at_most("--workers", self.workers.unwrap_or(1), 1024)?;
        at_most("--http-threads", self.http_threads.unwrap_or(1), 256)?;
        at_most("--max-batch", self.max_batch, 4096)?;
        if self.max_images.is_some_and(|n| n > self.max_queue) {
            return usage(
                "--max-images is more than --max-queue, so such a request could never be accepted; raise --max-queue",
            );
        }
        if self.max_body < 1024 {
            return usage("--max-body is less than 1 KiB, which no image fits; raise it");
        }
        if self.max_buffered < self.max_body {
            return usage(
                "--max-buffered is less than --max-body, so the largest request could never be accepted; raise it",
            );
        }
        for (flag, value) in [("--request-timeout", self.request_timeout), ("--stop-timeout", self.stop_timeout)] {
            if value.is_zero() || value > Duration::from_secs(24 * 3600) {
                return usage(format!("{flag} must be more than zero and at most a day"));
            }
        }
        if self.max_wait_ms > 10_000 {
            return usage("--max-wait-ms is more than 10 s; a batch that waits so long helps nobody, use less");
        }
        if self.drain > Duration::from_secs(3600) {
            return usage("--drain is more than an hour; use less");
        }
        for name in &self.allowed_host {
            check_host(name)?;
        }
        for origin in &self.cors {
            check_origin(origin)?;
        }
        for key in &self.api_key {
            check_key(key, "--api-key")?;
        }
        Ok(())
    }

    /// Inference threads per model.
    pub fn worker_threads(&self) -> usize {
        self.workers.unwrap_or_else(cores)
    }

    /// Connection threads.
    pub fn connection_threads(&self) -> usize {
        self.http_threads.unwrap_or_else(|| cores().div_ceil(2).min(8))
    }

    /// Most images in one request.
    pub fn images_per_request(&self) -> usize {
        self.max_images.unwrap_or(1000.min(self.max_queue))
    }

    /// Most pixels that decoding the images of one request may go over.
    pub fn request_pixels(&self) -> u64 {
        self.max_request_pixels.unwrap_or(self.max_image_pixels.saturating_mul(REQUEST_FACTOR))
    }

    /// What one image may cost.
    pub fn image_limits(&self) -> dtkc_image::Limits {
        let defaults = dtkc_image::Limits::default();
        // The longest side follows from the pixels: a 1-pixel strip is allowed to be long, not endless.
        let side = defaults.max_side.min(u32::try_from(self.max_image_pixels).unwrap_or(u32::MAX));
        dtkc_image::Limits { max_bytes: self.max_body, max_side: side, max_pixels: self.max_image_pixels }
    }
}

/// A key must survive the way through a header: visible ASCII, not empty.
pub(crate) fn check_key(key: &str, origin: &str) -> Result<(), Usage> {
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic()) {
        return usage(format!(
            "a key of {origin} is empty or has spaces or non-ASCII characters; use letters and digits"
        ));
    }
    Ok(())
}

/// A name as in a `Host` header, without the port.
fn check_host(name: &str) -> Result<(), Usage> {
    let good = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._[]:".contains(&b));
    if name == "*" || (good && crate::hosts::host_of(name) == name) {
        return Ok(());
    }
    usage(format!("--allowed-host '{name}' is not a host name; write for example clusters.example.org (no port), or *"))
}

fn check_origin(origin: &str) -> Result<(), Usage> {
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let good = origin == "*" || host.is_some_and(|h| !h.is_empty() && !h.contains(['/', ' ', '*']));
    if good {
        return Ok(());
    }
    usage(format!("--cors '{origin}' is not an origin; write for example https://example.org (no path), or *"))
}

fn positive(flag: &str, value: Option<usize>) -> Result<(), Usage> {
    if value == Some(0) { usage(format!("{flag} is 0; it must be at least 1")) } else { Ok(()) }
}

fn at_most(flag: &str, value: usize, most: usize) -> Result<(), Usage> {
    if value > most { usage(format!("{flag} {value} is too much; at most {most}")) } else { Ok(()) }
}

fn usage<T>(text: impl Into<String>) -> Result<T, Usage> {
    Err(Usage(text.into()))
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<ServeConfig, String> {
        let config =
            ServeConfig::try_parse_from(std::iter::once(&"dtkc-serve").chain(args)).map_err(|e| e.to_string())?;
        config.check().map_err(|e| e.to_string())?;
        Ok(config)
    }

    #[test]
    fn no_flags_serve_mnist_on_loopback() {
        let config = parse(&[]).unwrap();
        assert_eq!(config.model, ["mnist"]);
        assert!(config.host.is_loopback());
        assert_eq!((config.port, config.max_wait_ms), (8080, 0));
        assert_eq!(config.images_per_request(), 1000);
    }

    #[test]
    fn a_small_queue_lowers_the_images_per_request() {
        assert_eq!(parse(&["--max-queue", "16"]).unwrap().images_per_request(), 16);
    }

    #[test]
    fn wrong_values_are_refused_in_one_sentence() {
        let cases: [(&[&str], &str); 16] = [
            (&["--max-request-pixels", "5"], "--max-request-pixels"),
            (&["--workers", "0"], "--workers is 0"),
            (&["--max-batch", "0"], "--max-batch is 0"),
            (&["--max-queue", "8", "--max-images", "9"], "raise --max-queue"),
            (&["--max-body", "10"], "raise it"),
            (&["--max-body", "much"], "2GiB"),
            (&["--request-timeout", "0"], "more than zero"),
            (&["--rate-limit", "fast"], "50/s"),
            (&["--cors", "example.org"], "https://example.org"),
            (&["--cors", "https://example.org/path"], "no path"),
            (&["--allowed-host", "https://example.org"], "no port"),
            (&["--allowed-host", "example.org:80"], "no port"),
            (&["--max-connections", "0"], "--max-connections is 0"),
            (&["--api-key", "with space"], "letters and digits"),
            (&["--tls-cert", "cert.pem"], "--tls-key"),
            (&["--port", "99999"], "99999"),
        ];
        for (args, expected) in cases {
            let error = parse(args).unwrap_err();
            assert!(error.contains(expected), "{args:?}: {error}");
        }
    }

    #[test]
    fn every_flag_is_also_a_variable() {
        use clap::CommandFactory;
        for arg in ServeConfig::command().get_arguments() {
            let name = arg.get_id().as_str();
            if ["help", "version", "openapi"].contains(&name) {
                continue;
            }
            let expected = format!("DTKC_{}", name.to_uppercase());
            assert_eq!(arg.get_env().and_then(|e| e.to_str()), Some(expected.as_str()), "{name}");
        }
    }
}
