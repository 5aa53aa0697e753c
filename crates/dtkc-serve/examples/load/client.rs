//! A client that costs next to nothing: requests are bytes made beforehand, answers are counted, not read.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A keep-alive connection.
pub struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// What an answer said.
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<f64>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// Sends a request and reads its answer to the end. A connection that fails is opened anew next time.
    pub fn send(&mut self, request: &[u8]) -> std::io::Result<Answer> {
        let result = self.try_send(request);
        if result.is_err() {
            self.stream = None;
        }
        result
    }

    fn try_send(&mut self, request: &[u8]) -> std::io::Result<Answer> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(60)))?;
                self.stream.insert(BufReader::new(stream))
            }
        };
        stream.get_mut().write_all(request)?;
        let (mut status, mut length, mut retry_after, mut close) = (0, 0u64, None, false);
        let mut line = String::new();
        loop {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if let Some(rest) = text.strip_prefix("HTTP/1.1 ") {
                status = rest.get(..3).and_then(|s| s.parse().ok()).unwrap_or(0);
            } else if let Some((name, value)) = text.split_once(": ") {
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.parse().unwrap_or(0),
                    "retry-after" => retry_after = value.parse().ok(),
                    "connection" => close = value.eq_ignore_ascii_case("close"),
                    _ => {}
                }
            }
        }
        std::io::copy(&mut stream.by_ref().take(length), &mut std::io::sink())?;
        if close {
            self.stream = None;
        }
        Ok(Answer { status, retry_after })
    }
}

/// A POST with its head.
pub fn post(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A POST of several files as one multipart form.
pub fn post_files(path: &str, files: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for (n, file) in files.iter().enumerate() {
        let head = format!(
            "--edge\r\ncontent-disposition: form-data; name=\"image\"; filename=\"{n}.png\"\r\ncontent-type: image/png\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(file);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--edge--\r\n");
    post(path, "multipart/form-data; boundary=edge", &body)
}
