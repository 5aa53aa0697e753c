//! A real server process on a free port with a small model of seeded random weights, and a plain client.
#![allow(dead_code, unused_imports, clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dtkc_onnx::{Cluster, Metadata, Provenance};
pub use dtkc_testing::model::{CLUSTERS as K, EMBEDDING, SIDE};
use dtkc_testing::model::{metadata, network};
use dtkc_testing::{LONG, Noise, files, wait_for};
use serde_json::Value;

/// A model file with random weights: the same seed gives the same file.
pub fn model(seed: u64) -> Vec<u8> {
    model_of(seed, SIDE, K)
}

/// The same with another size.
pub fn model_of(seed: u64, side: usize, k: usize) -> Vec<u8> {
    let metadata = Metadata {
        clusters: (0..k).map(|id| Cluster { name: None, size: 100 * (k - id) as u64 }).collect(),
        provenance: Provenance { method: "dtkc".into(), dataset: "noise".into(), seed, ..Provenance::default() },
        metrics: [("acc".to_owned(), 0.5)].into(),
        ..metadata(side, k)
    };
    dtkc_onnx::write(&network(seed, side, k), &metadata).unwrap()
}

/// A gray PNG of seeded noise.
pub fn png(width: u32, height: u32, seed: u64) -> Vec<u8> {
    files::png(height, width, &Noise(seed).bytes((width * height) as usize))
}

/// The model's pixels of such a PNG where it has the model's size.
pub fn pixels(seed: u64) -> Vec<u8> {
    Noise(seed).bytes(SIDE * SIDE)
}

/// A gray PNG with a shape in it; another one for each number, so that a model has something to tell apart.
pub fn drawing(side: usize, number: usize) -> Vec<u8> {
    files::png(side as u32, side as u32, &dtkc_testing::drawing(side, number))
}

/// A zip of these files.
pub fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    files::zip(files)
}

/// A multipart body with its content type.
pub fn multipart(files: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, content) in files {
        write!(body, "--edge\r\ncontent-disposition: form-data; name=\"image\"; filename=\"{name}\"\r\n\r\n").unwrap();
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--edge--\r\n");
    ("multipart/form-data; boundary=edge".into(), body)
}

/// An answer that has arrived.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    /// The code of an error answer; checks that it has the one form.
    pub fn code(&self) -> String {
        let json = self.json();
        assert!(json["error"].as_str().is_some_and(|s| s.len() > 10), "no sentence: {json}");
        json["code"].as_str().unwrap().to_owned()
    }

    /// Checks status and code at once.
    pub fn expect(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code().as_str()), (status, code), "{}", self.text());
        self
    }
}

/// A running server; ended when dropped.
pub struct Server {
    pub child: Child,
    pub url: String,
    pub grpc: Option<SocketAddr>,
    pub folder: tempfile::TempDir,
    pub agent: ureq::Agent,
}

/// What ORT needs and what the tests must not inherit.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtkc-serve"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DTKC_")) {
        command.env_remove(name);
    }
    command
}

impl Server {
    /// The small model under the name `small`.
    pub fn start(args: &[&str]) -> Self {
        Self::with_model(&model(1), args)
    }

    pub fn with_model(bytes: &[u8], args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("small.onnx"), bytes).unwrap();
        Self::in_folder(folder, args)
    }

    pub fn in_folder(folder: tempfile::TempDir, args: &[&str]) -> Self {
        Self::of(command(), folder, args)
    }

    /// Of a command that has its environment already.
    pub fn of(mut command: Command, folder: tempfile::TempDir, args: &[&str]) -> Self {
        command.args(["--port", "0", "--log-level", "warn"]).args(args);
        if !args.contains(&"--workers") {
            command.args(["--workers", "1"]);
        }
        if !args.contains(&"--model") {
            command.arg("--model").arg(folder.path().join("small.onnx"));
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The last line of what it says.
        let said: Vec<String> =
            lines.by_ref().map(|line| line.unwrap()).take_while(|line| !line.trim().starts_with("try")).collect();
        let word = |name: &str| said.iter().find_map(|line| Some(line.trim().strip_prefix(name)?.trim().to_owned()));
        let Some(url) = word("page") else { panic!("the server ended: {:?}", child.wait()) };
        let grpc = word("gRPC").map(|address| address.parse().unwrap());
        // Keep reading, so that the server never writes into a closed pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.trim_end_matches('/').to_owned(), grpc, folder, agent: agent() }
    }

    pub fn model_path(&self) -> PathBuf {
        self.folder.path().join("small.onnx")
    }

    pub fn address(&self) -> SocketAddr {
        self.url.split("://").nth(1).unwrap().parse().unwrap()
    }

    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        answer(request.call())
    }

    pub fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        self.post_with(path, &[("content-type", content_type)], body)
    }

    pub fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        send(self.agent.post(format!("{}{path}", self.url)), headers, body)
    }

    pub fn put(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        send(self.agent.put(format!("{}{path}", self.url)), headers, body)
    }

    pub fn assign(&self, files: &[(&str, &[u8])]) -> Answer {
        let (content_type, body) = multipart(files);
        self.post("/v1/assign", &content_type, &body)
    }

    pub fn metric(&self, line: &str) -> f64 {
        let text = self.get("/metrics").text();
        let found = text.lines().find_map(|l| l.strip_prefix(line)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("no {line} in\n{text}"))
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the process to end and gives its exit code.
    pub fn wait(&mut self) -> i32 {
        let status = wait_for("the server ends", || self.child.try_wait().unwrap());
        status.code().unwrap_or(-1)
    }

    /// Sends bytes as they are and gives everything that comes back until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(bytes).unwrap();
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Sends a request without a body in any spelling of its first line and gives status and answer.
    pub fn spelled(&self, method: &str, target: &str, headers: &str) -> (u16, String) {
        let host = self.address();
        let text = self.raw(
            format!(
                "{method} {target} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n"
            )
            .as_bytes(),
        );
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{method} {target}: {text:?}")), text)
    }

    /// The service still answers, correctly and soon.
    pub fn assert_alive(&self) {
        let answer = self.assign(&[("a.png", &png(SIDE as u32, SIDE as u32, 1))]);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(mut request: ureq::RequestBuilder<ureq::typestate::WithBody>, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    answer(request.send(body))
}

pub fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(LONG)).build().into()
}

pub fn answer(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Answer {
    let mut response = result.unwrap();
    let body = response.body_mut().with_config().limit(256 << 20).read_to_vec().unwrap();
    Answer { status: response.status().as_u16(), headers: response.headers().clone(), body }
}

/// What the model says about pixels when it is asked directly.
pub fn reference(model: &Path, pixels: &[u8], count: usize) -> dtkc_infer::Assignments {
    let runtime = dtkc_infer::Runtime::find(None).unwrap();
    let model = dtkc_infer::ModelFile::open(model).unwrap();
    let mut session = dtkc_infer::Session::new(&runtime, &model, &Default::default()).unwrap();
    session.run(pixels, count).unwrap()
}
