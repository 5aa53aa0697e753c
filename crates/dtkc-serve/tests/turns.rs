//! Clients at two addresses take turns, however much one of them asks.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{SIDE, Server, png};
use dtkc_testing::{LONG, hostile, wait_until};
use socket2::{Domain, Socket, Type};

/// Requests of the one client, and how many of them must be waiting when the other comes.
const MANY: usize = 64;
const WAITING: usize = 40;

/// A connection from one of this machine's own addresses.
fn connect_from(address: &str, server: &Server) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let own: SocketAddr = format!("{address}:0").parse().unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&server.address().into()).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket.into()
}

/// Sends an image and gives the answer; nothing where the server ended meanwhile.
fn assign_from(address: &str, server: &Server, kind: &str, image: &[u8]) -> String {
    let mut stream = connect_from(address, server);
    let size = image.len();
    let head = format!(
        "POST /v1/assign HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), image].concat()).unwrap();
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// In the order in which they came, all of the first client's images would be done before the second's only one.
#[test]
fn a_client_with_one_image_does_not_wait_for_all_of_anothers() {
    let server = Server::start(&["--max-batch", "1", "--request-timeout", "1h", "--max-client-connections", "100"]);
    // Costly enough that they are still waiting when somebody else comes.
    let slow = hostile::progressive_jpeg(4096, 8);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..MANY {
            scope.spawn(|| {
                if assign_from("127.0.0.1", &server, "image/jpeg", &slow).starts_with("HTTP/1.1 200") {
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        wait_until("many images wait", || server.metric("dtkc_queue_images{model=\"small\"}") >= WAITING as f64);
        let before = answered.load(Ordering::SeqCst);
        let image = png(SIDE as u32, SIDE as u32, 1);
        let answer = assign_from("127.0.0.2", &server, "image/png", &image);
        let meanwhile = answered.load(Ordering::SeqCst) - before;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(meanwhile < WAITING / 2, "{meanwhile} images of the other client were done first");
        // Nobody waits for the rest.
        server.signal("KILL");
    });
}
