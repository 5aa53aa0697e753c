//! Files on web servers that behave, and on such that do not.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dtkc_source::remote::{FetchError, Seen, Stores as _};
use dtkc_store::Stores;

/// How a server behaves.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Gives parts.
    Ranges,
    /// Gives the whole, whatever is asked for.
    Whole,
    /// Gives parts, of which every second breaks off in the middle.
    Breaks,
    /// Gives the whole, and breaks off the first time.
    WholeBreaks,
    /// Gives parts of something else every time.
    Changes,
    /// Has nothing, and says so without end.
    Endless,
    /// Sends everybody on to itself.
    Circle,
    /// Does not say how long the file is.
    NoLength,
    /// Says that a part is another than it is.
    Lies,
}

struct Server {
    url: String,
    asked: Arc<AtomicUsize>,
}

fn content() -> Vec<u8> {
    (0..1_500_000u32).map(|i| (i.wrapping_mul(i) % 251) as u8).collect()
}

impl Server {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a%20file.bin?key=a/b*", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = count.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || answer(stream, manner, number));
            }
        });
        Self { url, asked }
    }
}

fn answer(mut stream: TcpStream, manner: Manner, number: usize) -> std::io::Result<()> {
    let (mut range, mut first) = (None, String::new());
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?;
        if first.is_empty() {
            first.clone_from(&line);
        }
        if line.is_empty() {
            break;
        }
        if let Some(rest) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            let (start, end) = rest.split_once('-').unwrap();
            range = Some((start.parse::<usize>().unwrap(), end.parse::<usize>().unwrap()));
        }
    }
    // The address arrives as it was written.
    assert!(first.contains("/a%20file.bin?key=a/b*"), "{first}");
    let all = content();
    let head = |status: &str, more: &str| format!("HTTP/1.1 {status}\r\nConnection: close\r\n{more}\r\n");
    match manner {
        Manner::Endless => {
            stream.write_all(head("404 Not Found", "").as_bytes())?;
            loop {
                stream.write_all(&[b'x'; 65536])?;
            }
        }
        Manner::Circle => {
            let more = "Location: /a%20file.bin?key=a/b*\r\nContent-Length: 0\r\n";
            return stream.write_all(head("302 Found", more).as_bytes());
        }
        Manner::NoLength => {
            stream.write_all(head("200 OK", "").as_bytes())?;
            return stream.write_all(&all);
        }
        _ => {}
    }
    let tag = if manner == Manner::Changes { format!("\"{number}\"") } else { "W/\"weak\"".to_owned() };
    let whole = matches!(manner, Manner::Whole | Manner::WholeBreaks);
    let (body, status, more) = match range.filter(|_| !whole) {
        Some((start, end)) => {
            let end = end.min(all.len() - 1);
            let told = if manner == Manner::Lies { start + 1 } else { start };
            let more = format!("Content-Range: bytes {told}-{end}/{}\r\n", all.len());
            (&all[start..=end], "206 Partial Content", more)
        }
        None => (&all[..], "200 OK", String::new()),
    };
    let more = format!("{more}ETag: {tag}\r\nContent-Length: {}\r\n", body.len());
    stream.write_all(head(status, &more).as_bytes())?;
    let breaks = manner == Manner::Breaks && number % 2 == 1 || manner == Manner::WholeBreaks && number < 3;
    stream.write_all(if breaks { &body[..body.len() / 2] } else { body })
}

#[test]
fn parts_are_read_wherever_somebody_looks() {
    let server = Server::start(Manner::Ranges);
    let all = content();
    assert_eq!(Stores.look(&server.url).unwrap(), Seen::Object(all.len() as u64));
    let mut file = Stores.open(&server.url).unwrap();
    assert_eq!(server.asked.load(Ordering::SeqCst), 1, "one look is enough");
    for (place, length) in
        [(0, 10), (1_400_000, 100_000), (70_000, 5), (70_005, 400_000), (1_499_990, 10), (65_530, 20)]
    {
        file.seek(SeekFrom::Start(place as u64)).unwrap();
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes).unwrap();
        assert!(bytes == all[place..place + length], "{place}");
    }
    file.seek(SeekFrom::End(-4)).unwrap();
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, all[all.len() - 4..]);
    file.seek(SeekFrom::Start(1 << 40)).unwrap();
    assert_eq!(file.read(&mut [0; 4]).unwrap(), 0);
    assert!(file.seek(SeekFrom::Current(-(1 << 50))).is_err());
}

#[test]
fn what_breaks_off_comes_whole_in_the_end() {
    for manner in [Manner::Breaks, Manner::Whole, Manner::WholeBreaks] {
        let server = Server::start(manner);
        let mut all = Vec::new();
        Stores.open(&server.url).unwrap().read_to_end(&mut all).unwrap();
        assert!(all == content());
        // Once more, from the middle: what was fetched as a whole is not fetched again.
        let before = server.asked.load(Ordering::SeqCst);
        let mut file = Stores.open(&server.url).unwrap();
        file.seek(SeekFrom::Start(1_000_000)).unwrap();
        all.clear();
        file.fork().read_to_end(&mut all).unwrap();
        assert!(all == content());
        assert_eq!(server.asked.load(Ordering::SeqCst) == before, manner != Manner::Breaks);
    }
}

#[test]
fn servers_that_do_not_behave_are_told_in_one_sentence() {
    for (manner, words) in [
        (Manner::Changes, "it was changed while it was read"),
        (Manner::Circle, "the server sends on and on"),
        (Manner::NoLength, "does not say how large it is"),
        (Manner::Lies, "does not answer as it should"),
    ] {
        let server = Server::start(manner);
        let read = Stores.open(&server.url).and_then(|mut file| file.read_to_end(&mut Vec::new()));
        let error = read.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(error.len() < 500 && !error.contains('\n'), "{error}");
    }
}

/// A refusal without end is not read to its end.
#[test]
fn a_refusal_takes_no_memory_without_end() {
    let server = Server::start(Manner::Endless);
    assert!(Stores.open(&server.url).is_err());
}

#[test]
fn whole_objects_are_bounded() {
    let server = Server::start(Manner::Ranges);
    let size = content().len() as u64;
    let fetched = Stores.fetch(&[&server.url, &server.url], size);
    assert!(fetched.into_iter().all(|bytes| bytes.unwrap() == content()));
    let fetched = Stores.fetch(&[&server.url], size - 1).remove(0);
    assert!(matches!(fetched, Err(FetchError::TooLarge(told)) if told == size));
    assert!(matches!(Stores.fetch(&["http://127.0.0.1:1/x"], 10).remove(0), Err(FetchError::Io(_))));
}
