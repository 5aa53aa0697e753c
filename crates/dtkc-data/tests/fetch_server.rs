//! `dtkc-data fetch` against a server that the test runs itself.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use dtkc_dataset::Dataset;
use dtkc_testing::files::zip;
use dtkc_testing::{Noise, Place, labels};

/// How the server behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// As it should.
    Good,
    /// The first answer breaks off after so many bytes.
    Cuts(usize),
    /// It knows no ranges, and the first answer breaks off.
    CutsAndForgets(usize),
    /// It has nothing.
    NotFound,
    /// It is out of order.
    Broken,
}

/// A server of one file; keeps the range header of every request.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<Option<usize>>>>,
}

impl Server {
    fn start(body: Vec<u8>, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/data", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away is no reason to stop.
                let _ = answer(stream, &body, manner, &log);
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<Option<usize>> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, body: &[u8], manner: Manner, log: &Mutex<Vec<Option<usize>>>) -> std::io::Result<()> {
    let mut range = None;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(rest) = line.strip_prefix("range: bytes=") {
            range = rest.trim_end_matches('-').parse::<usize>().ok();
        }
    }
    let first = {
        let mut log = log.lock().unwrap();
        log.push(range);
        log.len() == 1
    };
    match manner {
        Manner::NotFound => {
            return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        Manner::Broken => {
            return stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        _ => {}
    }
    let start = if matches!(manner, Manner::CutsAndForgets(_)) { 0 } else { range.unwrap_or(0) };
    if start >= body.len() {
        return stream
            .write_all(b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{}\r\nConnection: close\r\n\r\n",
        body.len() - start,
        body.len() - 1,
        body.len(),
    );
    stream.write_all(head.as_bytes())?;
    let end = match manner {
        Manner::Cuts(n) | Manner::CutsAndForgets(n) if first => n,
        _ => body.len(),
    };
    stream.write_all(&body[start..end])
}

/// Letters as the UEA archive has them: classes numbered from one, over a megabyte.
fn letters() -> Vec<u8> {
    let line = |label: usize| format!("{0}:{0}:{0}:{label}\n", vec!["0.25"; 700].join(","));
    let file = |n: usize| {
        let header = "@problemName L\n@timeStamps false\n@classLabel true 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n@data\n";
        format!("{header}{}", (0..n).map(|i| line(i % 20 + 1)).collect::<String>())
    };
    let filler = Noise(1).bytes(1_100_000);
    let (train, test) = (file(40), file(20));
    zip(&[
        ("filler.bin", &filler[..]),
        ("CharacterTrajectories_TRAIN.ts", train.as_bytes()),
        ("CharacterTrajectories_TEST.ts", test.as_bytes()),
    ])
}

fn args<'a>(server: &'a Server, set: &'a str) -> Vec<&'a str> {
    vec!["fetch", set, "--base-url", &server.url, "--cache", "cache", "--out", "a.h5"]
}

fn check_letters(dataset: &Dataset) {
    assert_eq!((dataset.len(), dataset.shape().dim()), (60, Some(3)));
    let names = dataset.label_names().unwrap().unwrap();
    assert_eq!((names.len(), names[0].as_str(), names[5].as_str(), names[19].as_str()), (20, "a", "g", "z"));
    assert_eq!(labels(dataset)[..3], [0, 1, 2]);
    assert_eq!(dataset.name(), "character-trajectories");
}

const SET: &str = "character-trajectories";

#[test]
fn a_set_is_downloaded_once() {
    let place = Place::of("dtkc-data");
    let server = Server::start(letters(), Manner::Good);
    check_letters(&place.made(&args(&server, SET), "a.h5"));
    check_letters(&place.made(&args(&server, SET), "a.h5"));
    assert_eq!(server.asked(), [None]);
    assert!(place.path("cache/character-trajectories/CharacterTrajectories.zip").exists());
}

#[test]
fn a_cut_connection_is_resumed() {
    let place = Place::of("dtkc-data");
    let server = Server::start(letters(), Manner::Cuts(500_000));
    check_letters(&place.made(&args(&server, SET), "a.h5"));
    assert_eq!(server.asked(), [None, Some(500_000)]);
}

#[test]
fn a_server_without_ranges_starts_over() {
    let place = Place::of("dtkc-data");
    let server = Server::start(letters(), Manner::CutsAndForgets(400_000));
    check_letters(&place.made(&args(&server, SET), "a.h5"));
    assert_eq!(server.asked(), [None, Some(400_000)]);
}

#[test]
fn a_partial_file_of_an_earlier_run_is_continued() {
    let place = Place::of("dtkc-data");
    let body = letters();
    place.write("cache/character-trajectories/CharacterTrajectories.zip.part", &body[..123_456]);
    let server = Server::start(body.clone(), Manner::Good);
    check_letters(&place.made(&args(&server, SET), "a.h5"));
    assert_eq!(server.asked(), [Some(123_456)]);
    // One that is already complete needs only its name.
    let place = Place::of("dtkc-data");
    place.write("cache/character-trajectories/CharacterTrajectories.zip.part", &body);
    check_letters(&place.made(&args(&server, SET), "a.h5"));
}

#[test]
fn wrong_content_is_noticed_and_removed() {
    let place = Place::of("dtkc-data");
    std::fs::create_dir_all(place.path("cache/mnist")).unwrap();
    let server = Server::start(b"not the digits".to_vec(), Manner::Good);
    let error = place.fails(&args(&server, "mnist"), 1);
    assert!(error.contains("another SHA-256") && error.contains("train-images-idx3-ubyte.gz"), "{error}");
    assert_eq!(std::fs::read_dir(place.path("cache/mnist")).unwrap().count(), 0);
    // A resumed file may be wrong because of its beginning: it is fetched once more from the start.
    place.write("cache/mnist/train-images-idx3-ubyte.gz.part", b"not");
    place.fails(&args(&server, "mnist"), 1);
    assert_eq!(server.asked(), [None, Some(3), None]);
}

#[test]
fn nobody_there_is_one_sentence_that_helps() {
    let place = Place::of("dtkc-data");
    std::fs::create_dir_all(place.path("cache")).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = Server { url: format!("http://{closed}"), asked: Arc::default() };
    let missing = Server::start(Vec::new(), Manner::NotFound);
    let busy = Server::start(Vec::new(), Manner::Broken);
    for (server, why) in [(&refused, "connection refused"), (&missing, "404"), (&busy, "503")] {
        let error = place.fails(&args(server, "usps"), 1);
        for part in ["usps.bz2 cannot be downloaded", why, "usps.t.bz2", "cache/usps", "--from"] {
            assert!(error.contains(part), "{error}");
        }
    }
    assert_eq!(missing.asked().len(), 1, "a missing file is not asked for again");
    assert!(busy.asked().len() > 1, "a busy server is");
}

#[test]
fn files_that_are_there_are_used() {
    let place = Place::of("dtkc-data");
    let text = "@problemName L\n@timeStamps false\n@classLabel true 1 2 3\n@data\n1:2:3:1\n4:5:6:3\n";
    place.write("mine/CharacterTrajectories.ts", text.as_bytes());
    let dataset = place.made(&["fetch", SET, "--from", "mine", "--out", "a.h5"], "a.h5");
    assert_eq!(labels(&dataset), [0, 2]);
    let said = place.run(["fetch", SET, "--from", "mine", "--classes", "c", "--out", "a.h5", "--force"]);
    assert!(said.out.contains("1 sequences of 3 dimensions"), "{}{}", said.out, said.err);
    let error = place.fails(&["fetch", "mnist", "--from", "mine", "--out", "b.h5"], 1);
    assert!(error.contains("mine") && error.contains("t10k-labels-idx1-ubyte.gz"), "{error}");
    let error = place.fails(&["fetch", "mnist", "--from", "gone", "--out", "b.h5"], 1);
    assert!(error.contains("gone"), "{error}");
    let error = place.fails(&["fetch", "imagenet", "--out", "b.h5"], 2);
    assert!(error.contains("fashion-mnist"), "{error}");
}

/// Two downloads of one set wrote into each other's file.
#[test]
fn a_second_download_is_told_whose_the_first_is() {
    let place = Place::of("dtkc-data");
    let server = Server::start(letters(), Manner::Good);
    std::fs::create_dir_all(place.path("cache").join(SET)).unwrap();
    // A lock belongs to an open file, so this process stands for another download.
    let first = dtkc_files::Lock::take_passing(&place.path("cache").join(SET).join(".lock")).unwrap();
    let error = place.fails(&args(&server, SET), 1);
    let process = format!("process {} ", std::process::id());
    assert!(error.contains("is being downloaded already (") && error.contains(&process), "{error}");
    assert!(server.asked().is_empty());
    drop(first);
    check_letters(&place.made(&args(&server, SET), "a.h5"));
}
