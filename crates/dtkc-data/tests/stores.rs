//! Imports from and to object stores: the same dataset as from the disk, and one sentence for whatever goes wrong.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpListener;

use dtkc_testing::files::{gz, idx, png, tar, zip};
use dtkc_testing::parquet::ImageTable;
use dtkc_testing::store::S3;
use dtkc_testing::{Place, Said, drawing};

const SIDE: usize = 16;

struct Bucket {
    place: Place,
    server: S3,
}

/// Names of images, and other files, as they lie in folders.
const NAMES: [&str; 7] =
    ["cat/img2.png", "cat/img10.png", "dog/1.png", "dog/01.png", "dog/noext", "dog/.hidden/x.png", "notes.txt"];

fn image(number: usize) -> Vec<u8> {
    png(SIDE as u32, SIDE as u32, &drawing(SIDE, number))
}

impl Bucket {
    fn new() -> Self {
        let (place, server) = (Place::of("dtkc-data"), S3::start());
        let bytes = |number: usize, name: &str| if name == "notes.txt" { b"no image".to_vec() } else { image(number) };
        let files: Vec<(&str, Vec<u8>)> = NAMES.iter().enumerate().map(|(n, name)| (*name, bytes(n, name))).collect();
        for (name, bytes) in &files {
            place.write(&format!("photos/{name}"), bytes);
            server.put(&format!("photos/{name}"), bytes);
        }
        // What some programs leave for a folder.
        server.put("photos/cat/", b"");
        let table: Vec<(&str, Vec<u8>)> = files.iter().take(4).map(|(name, bytes)| (*name, bytes.clone())).collect();
        for (name, bytes) in [
            ("a.zip", zip(&files)),
            ("a.tar", tar(&files)),
            ("a.tar.gz", gz(&tar(&files))),
            ("rows-0.parquet", ImageTable::new(&table).labelled(&[0, 0, 1, 1], Some(&["cat", "dog"])).file()),
            ("rows-1.parquet", ImageTable::new(&table).labelled(&[0, 0, 1, 1], Some(&["cat", "dog"])).file()),
            ("train-images-idx3-ubyte", idx(&[2, 4, 4], &[7; 32])),
            ("train-labels-idx1-ubyte", idx(&[2], &[1, 0])),
        ] {
            place.write(&format!("arch/{name}"), &bytes);
            server.put(&format!("arch/{name}"), &bytes);
        }
        Self { place, server }
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, &[])
    }

    fn run_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
        let mut command = self.place.command();
        command.args(arguments).envs(self.server.environment()).env("DTKC_WORK_DIR", self.place.path("work"));
        command.env("HOME", self.place.folder()).env("DTKC_STORE_RETRIES", "2");
        command.envs(environment.iter().copied()).output().unwrap().into()
    }

    /// Imports, and gives what the dataset holds.
    #[track_caller]
    fn fingerprint(&self, sources: &[&str], more: &[&str]) -> String {
        let arguments = [&["import"], sources, &["--out", "out.h5", "--force", "--quiet"], more].concat();
        self.run(&arguments).ok();
        self.place.open("out.h5").fingerprint().unwrap()
    }

    /// One sentence, and nothing left behind.
    #[track_caller]
    fn refused(&self, arguments: &[&str], environment: &[(&str, &str)], words: &str) {
        let before = self.place.names();
        let said = self.run_with(&[&["import"], arguments, &["--out", "none.h5"]].concat(), environment);
        assert!(said.err.contains(words), "{said:?}");
        said.fails(1, "error: ");
        assert_eq!(self.place.names(), before);
    }
}

#[test]
fn a_store_gives_what_the_disk_gives() {
    let bucket = Bucket::new();
    for (local, remote, more) in [
        (vec!["photos"], vec!["s3://bucket/photos/"], vec!["--size", "8x8"]),
        (vec!["photos"], vec!["s3://bucket/photos"], vec!["--labels-from-folders"]),
        (
            vec!["photos/cat", "photos/dog"],
            vec!["s3://bucket/photos/cat", "s3://bucket/photos/dog/"],
            vec!["--labels-from-folders"],
        ),
        (vec!["arch/a.zip"], vec!["s3://bucket/arch/a.zip"], vec!["--labels-from-folders"]),
        (vec!["arch/a.tar"], vec!["s3://bucket/arch/a.tar"], vec![]),
        (vec!["arch/a.tar.gz"], vec!["s3://bucket/arch/a.tar.gz"], vec!["--labels-from-folders"]),
        (vec!["arch/rows-*.parquet"], vec!["s3://bucket/arch/rows-*.parquet"], vec![]),
        (vec!["arch/rows-{0..1}.parquet"], vec!["s3://bucket/arch/rows-{0..1}.parquet"], vec![]),
        (vec!["photos/**/*.png"], vec!["s3://bucket/photos/**/*.png"], vec![]),
        (vec!["arch/train-images-idx3-ubyte"], vec!["s3://bucket/arch/train-images-idx3-ubyte"], vec![]),
    ] {
        let expected = bucket.fingerprint(&local, &more);
        assert_eq!(bucket.fingerprint(&remote, &more), expected, "{remote:?}");
    }
    // What was passed over is the same, too, and nothing that was brought stays.
    bucket.fingerprint(&["photos"], &[]);
    let list = bucket.place.text("out.h5.passed-over.csv");
    bucket.fingerprint(&["s3://bucket/photos"], &[]);
    assert_eq!(bucket.place.text("out.h5.passed-over.csv"), list);
    assert!(bucket.place.names().iter().all(|name| !name.starts_with('.')), "{:?}", bucket.place.names());
}

#[test]
fn a_dataset_goes_to_a_store_whole_and_replaces_nothing_unasked() {
    let bucket = Bucket::new();
    bucket.fingerprint(&["photos"], &["--name", "x"]);
    let local = bucket.place.read("out.h5");
    let arguments = ["import", "s3://bucket/photos", "--name", "x", "--out", "s3://bucket/sets/x.h5"];
    let said = bucket.run(&arguments).ok();
    assert!(
        said.contains("wrote s3://bucket/sets/x.h5: 5 images")
            && said.contains("s3://bucket/sets/x.h5.passed-over.csv"),
        "{said}"
    );
    assert_eq!(bucket.server.get("sets/x.h5").unwrap(), local);
    assert!(
        bucket.server.get("sets/x.h5.passed-over.csv").is_some()
            && bucket.server.get("sets/x.h5.skipped.csv").is_none()
    );
    bucket.run(&arguments).fails(1, "s3://bucket/sets/x.h5: it exists already; add --force to replace it");
    bucket.run(&[&arguments[..], &["--force"]].concat()).ok();
    for (source, words) in [
        ("s3://bucket/sets/x.h5", "is one of the sources"),
        ("s3://bucket/sets", "lies among them"),
        ("s3://bucket/sets/*.h5", "lies among them"),
    ] {
        bucket.run(&["import", source, "--out", "s3://bucket/sets/x.h5", "--force"]).fails(2, words);
    }
    bucket.run(&["import", "photos", "--out", "s3://bucket/sets/"]).fails(1, "it names a folder");
    bucket.run(&["import", "photos", "--out", "https://127.0.0.1/x.h5"]).fails(1, "nothing is written to web servers");
    // Nothing is left here, and no upload is left open there.
    assert_eq!(dtkc_testing::names(&bucket.place.path("work")), [""; 0]);
    assert_eq!(bucket.server.uploads(), [""; 0]);
}

#[test]
fn whatever_goes_wrong_is_one_sentence() {
    let bucket = Bucket::new();
    bucket.refused(&["s3://bucket/nothing"], &[], "s3://bucket/nothing: there is no such object and no such folder");
    bucket.refused(&["s3://bucket/nothing/"], &[], "no such folder");
    bucket.refused(&["s3://bucket/*.tar"], &[], "matches no file");
    bucket.refused(&["s3://elsewhere/a.tar"], &[], "there is no bucket 'elsewhere'");
    bucket.refused(&["s3://elsewhere/"], &[], "there is no bucket 'elsewhere'");
    bucket.refused(&["s3://bucket/arch/"], &[], "name its data files themselves");
    let none = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", "")];
    bucket.refused(&["s3://bucket/photos"], &none, "there are no credentials");
    let closed = S3::closed().endpoint();
    bucket.refused(&["s3://bucket/photos"], &[("AWS_ENDPOINT_URL", &closed)], "cannot be reached");
    let closed = S3::closed();
    let (wrong, words) =
        ([("AWS_ENDPOINT_URL", &*closed.endpoint())], "the credentials are refused (InvalidAccessKeyId)");
    bucket.refused(&["s3://bucket/photos/"], &wrong, words);
    bucket.refused(&["s3://bucket/photos/cat/img2.png"], &wrong, words);
    bucket.refused(&["gs://bucket/x"], &[], "GOOGLE_APPLICATION_CREDENTIALS");
    bucket.refused(&["az://bucket/x"], &[], "AZURE_STORAGE_ACCOUNT_NAME");
    bucket.refused(&["http://192.0.2.1/x.tar"], &[], "plain http");
    bucket
        .run(&["info", "s3://bucket/x.h5"])
        .fails(1, "bring it with 'dtkc-data import s3://bucket/x.h5 --out set.h5'");
}

#[test]
fn a_profile_has_credentials_too() {
    let bucket = Bucket::new();
    bucket.place.write(".aws/credentials", "[work]\naws_access_key_id = test\naws_secret_access_key = test\n");
    let none = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", ""), ("AWS_PROFILE", "work")];
    let said = bucket.run_with(&["import", "s3://bucket/photos", "--out", "out.h5"], &none);
    assert!(said.ok().contains("5 images"));
}

/// A server that takes requests and says nothing is given up.
#[test]
fn silence_has_an_end() {
    let bucket = Bucket::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 100]);
            open.push(stream);
        }
    });
    let environment = [("AWS_ENDPOINT_URL", &*endpoint), ("DTKC_STORE_TIMEOUT", "1"), ("DTKC_STORE_RETRIES", "1")];
    bucket.refused(&["s3://bucket/photos"], &environment, "said nothing for 1 seconds");
}

/// Answers of a server that are cut off in the middle, several times, are asked for again from where they ended; what comes out is
/// whole. The server itself is moto, behind a line that breaks.
#[test]
fn what_breaks_off_is_asked_for_again() {
    let bucket = Bucket::new();
    let pixels: Vec<u8> = (0..600_000usize).map(|i| (i * i % 251) as u8).collect();
    let array = idx(&[600, 40, 25], &pixels);
    bucket.place.write("arch/big-images-idx3-ubyte", &array);
    bucket.server.put("arch/big-images-idx3-ubyte", &array);
    let expected = bucket.fingerprint(&["arch/big-images-idx3-ubyte"], &[]);
    let breaking = breaking_line(bucket.server.endpoint().trim_start_matches("http://").to_owned());
    let arguments = ["import", "s3://bucket/arch/big-images-idx3-ubyte", "--out", "out.h5", "--force"];
    bucket.run_with(&arguments, &[("AWS_ENDPOINT_URL", &breaking), ("DTKC_STORE_RETRIES", "8")]).ok();
    assert_eq!(bucket.place.open("out.h5").fingerprint().unwrap(), expected);
}

/// Passes bytes on to a server; of every three connections two break off, one after some bytes and one at once.
fn breaking_line(server: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let most = [0, 50_000, usize::MAX][number % 3];
            let server = server.clone();
            std::thread::spawn(move || {
                let Ok(mut there) = std::net::TcpStream::connect(&server) else { return };
                if most == 0 {
                    return;
                }
                let (Ok(mut up), Ok(mut to)) = (stream.try_clone(), there.try_clone()) else { return };
                std::thread::spawn(move || std::io::copy(&mut up, &mut to));
                let (mut passed, mut buffer, mut back) = (0, [0; 8192], &stream);
                while let Ok(read @ 1..) = there.read(&mut buffer) {
                    passed += read;
                    if passed > most || back.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
                let _ = stream.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    address
}

/// A line to a server that takes no more than so many bytes of a connection: an upload in parts comes to a halt in it.
#[cfg(unix)]
fn narrow_line(server: String, most: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let server = server.clone();
            std::thread::spawn(move || {
                let Ok(mut there) = std::net::TcpStream::connect(&server) else { return };
                let (Ok(mut back), Ok(mut from)) = (stream.try_clone(), there.try_clone()) else { return };
                std::thread::spawn(move || std::io::copy(&mut from, &mut back));
                let (mut passed, mut buffer, mut up) = (0, [0; 8192], &stream);
                while let Ok(read @ 1..) = up.read(&mut buffer) {
                    passed += read;
                    if passed > most {
                        // It goes on listening, and says nothing.
                        std::thread::park();
                    }
                    if there.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

/// An upload that is stopped or killed in the middle leaves no object; one that is stopped takes its parts back.
#[cfg(unix)]
#[test]
fn an_upload_that_does_not_end_leaves_no_object() {
    let bucket = Bucket::new();
    let pixels: Vec<u8> = (0..6000 * 64 * 64usize).map(|i| (i * i % 251) as u8).collect();
    bucket.place.write("big-images-idx3-ubyte", idx(&[6000, 64, 64], &pixels));
    let narrow = narrow_line(bucket.server.endpoint().trim_start_matches("http://").to_owned(), 1 << 20);
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let mut command = bucket.place.command();
        command.args(["import", "big-images-idx3-ubyte", "--out", "s3://bucket/big.h5"]);
        command.envs(bucket.server.environment()).env("AWS_ENDPOINT_URL", &narrow);
        command.env("DTKC_WORK_DIR", bucket.place.path("work")).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        dtkc_testing::wait_until("the upload has begun", || !bucket.server.uploads().is_empty());
        // The first moment is the look whether it may be written.
        let made = || {
            dtkc_testing::names(&bucket.place.path("work"))
                .iter()
                .any(|folder| bucket.place.path("work").join(folder).join("big.h5").exists())
        };
        dtkc_testing::wait_until("the dataset is made", made);
        dtkc_testing::wait_until("its upload has begun", || !bucket.server.uploads().is_empty());
        let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code);
        assert!(!bucket.server.names().iter().any(|name| name == "big.h5"));
        let said = String::from_utf8(output.stderr).unwrap();
        if signal == "-INT" {
            assert!(said.contains("s3://bucket/big.h5 was not sent; the dataset is kept in"), "{said}");
            assert_eq!(bucket.server.uploads(), [""; 0]);
            std::fs::remove_dir_all(bucket.place.path("work")).unwrap();
        }
    }
}

/// A large dataset goes in parts, and arrives as it was.
#[test]
fn a_large_dataset_goes_in_parts() {
    let bucket = Bucket::new();
    let pixels: Vec<u8> = (0..6000 * 64 * 64usize).map(|i| (i * i % 251) as u8).collect();
    bucket.place.write("big-images-idx3-ubyte", idx(&[6000, 64, 64], &pixels));
    bucket.fingerprint(&["big-images-idx3-ubyte"], &["--name", "x"]);
    let arguments = ["import", "big-images-idx3-ubyte", "--name", "x", "--out", "s3://bucket/big.h5"];
    bucket.run(&arguments).ok();
    assert!(bucket.server.get("big.h5").unwrap() == bucket.place.read("out.h5"));
    bucket.run(&arguments).fails(1, "it exists already");
    // And comes back by stretches.
    let expected = bucket.place.open("out.h5").fingerprint().unwrap();
    assert_eq!(bucket.fingerprint(&["s3://bucket/big.h5"], &[]), expected);
}

/// Google's store speaks the same protocol as S3 in its older interface, which is the one that is used: moto answers it, too.
#[test]
fn google_is_asked_in_its_own_words() {
    let bucket = Bucket::new();
    let endpoint = bucket.server.endpoint();
    let google = [("GOOGLE_BASE_URL", &*endpoint), ("GOOGLE_BEARER_TOKEN", "token"), ("AWS_ENDPOINT_URL", "")];
    let expected = bucket.fingerprint(&["photos"], &[]);
    bucket.run_with(&["import", "gs://bucket/photos", "--out", "out.h5", "--force"], &google).ok();
    assert_eq!(bucket.place.open("out.h5").fingerprint().unwrap(), expected);
    bucket.run_with(&["import", "gs://bucket/photos", "--out", "gs://bucket/sets/g.h5"], &google).ok();
    assert!(bucket.server.get("sets/g.h5").unwrap() == bucket.place.read("out.h5"));
    bucket.refused(&["gs://bucket/none"], &google, "no such object and no such folder");
    bucket.refused(&["gs://elsewhere/none"], &google, "there is no bucket 'elsewhere'");
}
