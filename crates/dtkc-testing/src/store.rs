//! A local S3 server of others (PyPI `moto`), and what a test must say to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A server that ends with the test. It has a bucket called `bucket`.
#[derive(Debug)]
pub struct S3 {
    address: String,
    child: Child,
    /// Its end tells the server to end.
    _input: Option<ChildStdin>,
}

impl S3 {
    /// Starts a server that lets everybody in who has any credentials.
    pub fn start() -> Self {
        let server = Self::with(&[]);
        assert_eq!(server.ask("PUT", "", &[]).0, 200, "the bucket was not made");
        server
    }

    /// Starts one that knows nobody.
    pub fn closed() -> Self {
        Self::with(&[("INITIAL_NO_AUTH_ACTION_COUNT", "0")])
    }

    fn with(environment: &[(&str, &str)]) -> Self {
        let python = std::env::var_os("DTKC_PYTHON").unwrap_or_else(|| "python3".into());
        let mut command = Command::new(python);
        let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.tools/python");
        let packages = std::env::var_os("DTKC_PYTHONPATH").map_or_else(|| PathBuf::from(tools), PathBuf::from);
        command.env("PYTHONPATH", packages).envs(environment.iter().copied());
        command.args(["-c", include_str!("store_server.py")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("python3 is there");
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(!address.is_empty(), "no S3 server: run `scripts/setup.sh --tests`, which fetches moto");
        let input = child.stdin.take();
        Self { address, child, _input: input }
    }

    /// Where it is.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a program must have in its environment to use it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut environment = vec![("AWS_ENDPOINT_URL", self.endpoint()), ("AWS_REGION", "us-east-1".into())];
        environment.extend([("AWS_ACCESS_KEY_ID", "test".into()), ("AWS_SECRET_ACCESS_KEY", "test".into())]);
        environment.push(("AWS_EC2_METADATA_DISABLED", "true".into()));
        environment
    }

    /// Puts an object into the bucket.
    #[track_caller]
    pub fn put(&self, key: &str, bytes: &[u8]) {
        assert_eq!(self.ask("PUT", &format!("/{key}"), bytes).0, 200, "{key}");
    }

    /// An object; `None` where there is none.
    #[track_caller]
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        match self.ask("GET", &format!("/{key}"), &[]) {
            (200, bytes) => Some(bytes),
            (404, _) => None,
            (status, _) => panic!("{key}: {status}"),
        }
    }

    /// The names of all objects, as the server lists them.
    #[track_caller]
    pub fn names(&self) -> Vec<String> {
        self.listed("?list-type=2", "Key")
    }

    /// Uploads in parts that were neither completed nor given up.
    #[track_caller]
    pub fn uploads(&self) -> Vec<String> {
        self.listed("?uploads", "Key")
    }

    #[track_caller]
    fn listed(&self, query: &str, tag: &str) -> Vec<String> {
        let (status, body) = self.ask("GET", query, &[]);
        assert_eq!(status, 200);
        let text = String::from_utf8(body).unwrap();
        let open = format!("<{tag}>");
        text.split(&open).skip(1).filter_map(|rest| rest.split('<').next()).map(str::to_owned).collect()
    }

    /// One request below the bucket, by hand: what is tested does not test itself.
    fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        // The server looks at the form of a signature only.
        let signature =
            "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x";
        let head = format!(
            "{method} /bucket{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {signature}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("a head") + 4;
        let status = String::from_utf8_lossy(&answer[9..12]).parse().unwrap();
        (status, answer.split_off(end))
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        // By its own id, and only this one.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
