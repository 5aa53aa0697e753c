//! A running service as a target: bodies over a connection that stays open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Parser;
use dtkc_serve::ServeConfig;

use crate::targets::Execute;

/// Answers that a body may get; anything else is a finding.
const GOOD: [u16; 9] = [200, 400, 408, 413, 415, 422, 429, 503, 504];

/// A service in this process, asked at `path` with bodies of that type.
pub fn start(path: &'static str, content_type: &'static str) -> anyhow::Result<Execute> {
    let address = serve()?;
    let mut connection: Option<BufReader<TcpStream>> = None;
    Ok(Box::new(move |body| {
        let mut stream = match connection.take() {
            Some(stream) => stream,
            None => BufReader::new(connect(address).map_err(|error| error.to_string())?),
        };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let sent = stream.get_mut().write_all(head.as_bytes()).and_then(|()| stream.get_mut().write_all(body));
        match sent.and_then(|()| answer(&mut stream)) {
            Ok((status, is_open)) if GOOD.contains(&status) => {
                connection = Some(stream).filter(|_| is_open);
                Ok(())
            }
            Ok((status, _)) => Err(format!("it answers {status}")),
            // A connection may end with an answer that says so; the next input gets a new one.
            Err(_) => Ok(()),
        }
    }))
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(stream)
}

/// The status of an answer, and whether the connection stays open.
fn answer(stream: &mut BufReader<TcpStream>) -> std::io::Result<(u16, bool)> {
    let (mut status, mut length, mut is_open) = (0, 0, true);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if status == 0 {
            status = line.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
        } else if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().unwrap_or(0);
        } else if line == "connection: close" {
            is_open = false;
        }
    }
    std::io::copy(&mut stream.take(length), &mut std::io::sink())?;
    Ok((status, is_open))
}

/// Starts the service with a small model for images, and one for sequences, on a thread of its own.
fn serve() -> anyhow::Result<SocketAddr> {
    let model = std::path::absolute("small.onnx")?;
    fs_err::write(&model, dtkc_testing::model::model(1))?;
    let strokes = std::path::absolute("strokes.onnx")?;
    fs_err::write(&strokes, dtkc_testing::model::sequence_model(1, 2))?;
    let [model, strokes] = [model, strokes].map(|path| path.to_string_lossy().into_owned());
    let limits = ["--max-image-pixels", "1000000", "--max-steps", "1000"];
    let models = ["--model", &model, "--model", &strokes];
    let flags = [&["dtkc-serve", "--port", "0", "--workers", "1"][..], &limits, &models].concat();
    let config = ServeConfig::try_parse_from(flags)?;
    let (ready, address) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            // Kept: a service whose controls are gone ends.
            let (_controls, received) = tokio::sync::mpsc::channel(1);
            let tell = move |now: &dtkc_serve::Ready| ready.send(now.address).unwrap_or_default();
            dtkc_serve::serve(config, received, tell).await
        })
    });
    address.recv_timeout(Duration::from_secs(60)).map_err(|_| anyhow!("it did not start")).context("the service")
}
