//! What Prometheus can read. Names and labels are fixed here, once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::totals::{Totals, TotalsNow};

static ABOUT: Metadata<'static> = Metadata::new("dtkc_serve", Level::INFO, Some("dtkc_serve"));

const SECONDS: [f64; 14] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
const BATCHES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
const CONFIDENCE: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

const COUNTERS: [(&str, &str); 7] = [
    ("dtkc_requests_total", "Requests answered, by endpoint, method and status."),
    ("dtkc_errors_total", "Requests that were not served, by error code."),
    ("dtkc_images_total", "Images assigned to a cluster."),
    ("dtkc_image_failures_total", "Images that could not be used, by error code."),
    ("dtkc_assigned_total", "Images assigned, by cluster."),
    ("dtkc_reloads_total", "Attempts to reload a model file, by result."),
    ("dtkc_connections_refused_total", "Connections that were closed at once, by the limit that they exceeded."),
];
const GAUGES: [(&str, &str); 8] = [
    ("dtkc_queue_images", "Images waiting in the queue."),
    ("dtkc_confidence_mean", "Mean confidence of the assigned images since the start."),
    ("dtkc_ready", "1 when every model is loaded and the service accepts requests."),
    ("dtkc_buffered_bytes", "Request bodies and unread answers held in memory."),
    ("dtkc_memory_bound_bytes", "The most memory that the settings and the models allow."),
    ("dtkc_connections", "Connections that are open."),
    ("dtkc_info", "Always 1; the label has the version."),
    ("process_resident_memory_bytes", "Resident memory of the process."),
];
const HISTOGRAMS: [(&str, &str, &[f64]); 6] = [
    ("dtkc_request_seconds", "Time from a request's head to its answer, by endpoint.", &SECONDS),
    ("dtkc_queue_seconds", "Time from the queue's door until the first image of a request was taken.", &SECONDS),
    ("dtkc_decode_seconds", "Time to decode one batch.", &SECONDS),
    ("dtkc_inference_seconds", "Time of one inference call.", &SECONDS),
    ("dtkc_batch_images", "Images per inference call.", &BATCHES),
    ("dtkc_confidence", "Confidence of the assigned images.", &CONFIDENCE),
];

/// The registry. Not a global: a process may hold several services.
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    started: Instant,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").field("started", &self.started).finish_non_exhaustive()
    }
}

impl Metrics {
    /// An empty registry.
    pub fn new() -> Result<Self, BuildError> {
        let mut builder = PrometheusBuilder::new();
        for (name, _, buckets) in HISTOGRAMS {
            builder = builder.set_buckets_for_metric(Matcher::Full(name.into()), buckets)?;
        }
        let recorder = builder.build_recorder();
        for (name, text) in COUNTERS {
            recorder.describe_counter(name.into(), None, text.into());
        }
        for (name, text) in GAUGES {
            recorder.describe_gauge(name.into(), None, text.into());
        }
        for (name, text, _) in HISTOGRAMS {
            let unit = name.ends_with("_seconds").then_some(Unit::Seconds);
            recorder.describe_histogram(name.into(), unit, text.into());
        }
        let metrics = Self { handle: recorder.handle(), recorder, started: Instant::now() };
        metrics.gauge("dtkc_info", [("version", env!("CARGO_PKG_VERSION").into())]).set(1.0);
        Ok(metrics)
    }

    /// One request was answered. `endpoint` is a pattern, never a path that a client made up.
    pub fn request(&self, endpoint: &str, method: &str, status: u16, elapsed: Duration) {
        let endpoint = SharedString::from(endpoint.to_owned());
        let labels = [
            ("endpoint", endpoint.clone()),
            ("method", method.to_owned().into()),
            ("status", status.to_string().into()),
        ];
        self.counter("dtkc_requests_total", labels).increment(1);
        self.histogram("dtkc_request_seconds", [("endpoint", endpoint)]).record(elapsed);
    }

    /// One request was refused or failed.
    pub fn error(&self, code: &str) {
        self.counter("dtkc_errors_total", [("code", code.to_owned().into())]).increment(1);
    }

    /// One attempt to reload a model.
    pub fn reload(&self, model: &str, result: &'static str) {
        let labels = [("model", model.to_owned().into()), ("result", result.into())];
        self.counter("dtkc_reloads_total", labels).increment(1);
    }

    /// How much memory there can be, which follows from settings and models.
    pub fn memory_bound(&self, bytes: u64) {
        self.gauge("dtkc_memory_bound_bytes", []).set(bytes as f64);
    }

    /// One connection was closed at once.
    pub fn connection_refused(&self, limit: &'static str) {
        self.counter("dtkc_connections_refused_total", [("limit", limit.into())]).increment(1);
    }

    /// Everything in Prometheus' text form.
    pub fn render(&self, ready: bool, buffered: u64, connections: usize, queues: &[(&str, usize)]) -> String {
        self.gauge("dtkc_ready", []).set(if ready { 1.0 } else { 0.0 });
        self.gauge("dtkc_buffered_bytes", []).set(buffered as f64);
        self.gauge("dtkc_connections", []).set(connections as f64);
        for (model, images) in queues {
            self.gauge("dtkc_queue_images", [("model", (*model).to_owned().into())]).set(*images as f64);
        }
        if let Some(bytes) = resident_memory() {
            self.gauge("process_resident_memory_bytes", []).set(bytes as f64);
        }
        self.handle.render()
    }

    /// Folds recorded times into their buckets; without it they would pile up until somebody reads them.
    pub fn tidy(&self) {
        self.handle.run_upkeep();
    }

    /// The metrics of one model with `k` clusters.
    pub fn model(&self, name: &str, k: usize) -> ModelMetrics {
        let model = || ("model", SharedString::from(name.to_owned()));
        let cluster = |id: usize| self.counter("dtkc_assigned_total", [model(), ("cluster", id.to_string().into())]);
        ModelMetrics {
            images: self.counter("dtkc_images_total", [model()]),
            clusters: (0..k).map(cluster).collect(),
            confidence: self.histogram("dtkc_confidence", [model()]),
            mean: self.gauge("dtkc_confidence_mean", [model()]),
            millionths: AtomicU64::new(0),
            count: AtomicU64::new(0),
            queue: self.histogram("dtkc_queue_seconds", [model()]),
            decode: self.histogram("dtkc_decode_seconds", [model()]),
            inference: self.histogram("dtkc_inference_seconds", [model()]),
            batches: self.histogram("dtkc_batch_images", [model()]),
            failures: FAILURES
                .map(|code| (code, self.counter("dtkc_image_failures_total", [model(), ("code", code.into())]))),
            totals: Totals::default(),
        }
    }

    fn counter<const N: usize>(&self, name: &'static str, labels: [(&'static str, SharedString); N]) -> Counter {
        self.recorder.register_counter(&key(name, labels), &ABOUT)
    }

    fn gauge<const N: usize>(&self, name: &'static str, labels: [(&'static str, SharedString); N]) -> Gauge {
        self.recorder.register_gauge(&key(name, labels), &ABOUT)
    }

    fn histogram<const N: usize>(&self, name: &'static str, labels: [(&'static str, SharedString); N]) -> Histogram {
        self.recorder.register_histogram(&key(name, labels), &ABOUT)
    }
}

/// The codes that one image can fail with; any other is counted under the last one.
const FAILURES: [&str; 13] = [
    "empty",
    "not_an_image",
    "unsupported",
    "truncated",
    "damaged",
    "too_large",
    "too_costly",
    "no_pixels",
    "decoder_failed",
    "bad_base64",
    "damaged_archive",
    "encrypted",
    "other",
];

/// The metrics of one model; cheap to record, because every handle was looked up before.
pub struct ModelMetrics {
    images: Counter,
    clusters: Vec<Counter>,
    confidence: Histogram,
    mean: Gauge,
    millionths: AtomicU64,
    count: AtomicU64,
    queue: Histogram,
    decode: Histogram,
    inference: Histogram,
    batches: Histogram,
    failures: [(&'static str, Counter); FAILURES.len()],
    totals: Totals,
}

impl std::fmt::Debug for ModelMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelMetrics").field("count", &self.count).finish_non_exhaustive()
    }
}

impl ModelMetrics {
    /// One batch was decoded and run; `images` were left of it after decoding.
    pub fn batch(&self, images: usize, decoding: Duration, inference: Duration) {
        self.totals.batch(images, decoding, inference);
        self.decode.record(decoding);
        if images > 0 {
            self.inference.record(inference);
            self.batches.record(images as f64);
        }
    }

    /// One image was assigned.
    pub fn assigned(&self, cluster: usize, confidence: f32) {
        self.images.increment(1);
        if let Some(counter) = self.clusters.get(cluster) {
            counter.increment(1);
        }
        self.confidence.record(confidence);
        let sum = self.millionths.fetch_add((f64::from(confidence) * 1e6) as u64, Ordering::Relaxed);
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        self.mean.set((sum as f64 / 1e6 + f64::from(confidence)) / count as f64);
    }

    /// One image could not be used.
    pub fn image_failed(&self, code: &str) {
        self.totals.failed();
        let found = self.failures.iter().find(|(known, _)| *known == code).or(self.failures.last());
        if let Some((_, counter)) = found {
            counter.increment(1);
        }
    }

    /// One request waited that long.
    pub fn queued(&self, waited: Duration) {
        self.totals.queued(waited);
        self.queue.record(waited);
    }

    /// What can be read back.
    pub fn totals(&self) -> TotalsNow {
        self.totals.now()
    }
}

fn key<const N: usize>(name: &'static str, labels: [(&'static str, SharedString); N]) -> Key {
    Key::from_parts(name, labels.map(|(name, value)| Label::new(name, value)).to_vec())
}

/// Resident bytes, where the system says so (Linux).
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_what_was_counted() {
        let metrics = Metrics::new().unwrap();
        let model = metrics.model("mnist", 3);
        model.assigned(2, 0.75);
        model.assigned(2, 0.25);
        model.image_failed("truncated");
        model.image_failed("never heard of");
        model.batch(2, Duration::from_millis(1), Duration::from_millis(3));
        metrics.request("/v1/assign", "POST", 200, Duration::from_millis(4));
        metrics.error("queue_full");
        let page = metrics.render(true, 17, 3, &[("mnist", 5)]);
        for line in [
            "dtkc_assigned_total{model=\"mnist\",cluster=\"2\"} 2",
            "dtkc_confidence_mean{model=\"mnist\"} 0.5",
            "dtkc_image_failures_total{model=\"mnist\",code=\"truncated\"} 1",
            "dtkc_image_failures_total{model=\"mnist\",code=\"other\"} 1",
            "dtkc_requests_total{endpoint=\"/v1/assign\",method=\"POST\",status=\"200\"} 1",
            "dtkc_errors_total{code=\"queue_full\"} 1",
            "dtkc_queue_images{model=\"mnist\"} 5",
            "dtkc_batch_images_sum{model=\"mnist\"} 2",
            "dtkc_ready 1",
        ] {
            assert!(page.lines().any(|l| l == line), "{line} is missing in\n{page}");
        }
        assert!(page.contains("# HELP dtkc_queue_images Images waiting"), "{page}");
    }
}
