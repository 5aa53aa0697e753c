//! What the program refuses to write over, and what it needs to be told.
#![allow(clippy::unwrap_used)]

use dtkc_item::ImageShape;
use dtkc_testing::files::{gray_png, gz, idx};
use dtkc_testing::{Place, Set};

const GRAY: ImageShape = ImageShape { height: 8, width: 8, channels: 1 };

/// A place with a little of everything that can be read.
fn place() -> Place {
    let place = Place::of("dtkc-data");
    Set::new(GRAY, 20).labelled(&["a", "b"]).write(&place.path("set.h5"));
    Set::new(GRAY, 20).write(&place.path("other.h5"));
    for i in 0..3 {
        place.write(&format!("photos/{i}.png"), gray_png(8, 8, i));
    }
    place.write("mnist/train-images-idx3-ubyte.gz", gz(&idx(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8])));
    place.write("mnist/train-labels-idx1-ubyte", idx(&[2], &[3, 4]));
    place
}

/// Everything below the folder with its content.
fn contents(place: &Place) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![place.folder().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() && !path.is_symlink() {
                true => folders.push(path),
                false => all.push((path.to_string_lossy().into_owned(), std::fs::read(&path).unwrap_or_default())),
            }
        }
    }
    all.sort();
    all
}

/// `import X.h5 --out X.h5` replaced the source, with exit code 0.
#[test]
fn an_input_is_never_replaced_however_it_is_spelled() {
    let place = place();
    let mut outs = vec![("set.h5", "set.h5"), ("set.h5", "./photos/../set.h5")];
    #[cfg(unix)]
    {
        std::fs::hard_link(place.path("set.h5"), place.path("hard.h5")).unwrap();
        std::os::unix::fs::symlink("set.h5", place.path("soft.h5")).unwrap();
        std::os::unix::fs::symlink("photos", place.path("way")).unwrap();
        std::os::unix::fs::symlink("../other.h5", place.path("mnist/link.h5")).unwrap();
        outs.extend([("set.h5", "hard.h5"), ("set.h5", "soft.h5"), ("soft.h5", "set.h5"), ("hard.h5", "soft.h5")]);
    }
    let before = contents(&place);
    let refused = |line: &str, words: &str| {
        for force in ["", " --force"] {
            let said = place.run_line(&format!("{line}{force}"));
            said.fails(2, words);
            assert!(contents(&place) == before, "{line}{force} changed something");
        }
    };
    for (source, out) in outs {
        for line in [
            format!("import {source} --out {out}"),
            format!("subset {source} --count 3 --out {out}"),
            format!("merge other.h5 {source} --out {out}"),
            format!("preview {source} --out {out}"),
            format!("views {source} --out {out}"),
        ] {
            refused(&line, "is one of the inputs");
        }
    }
    refused("import mnist/train-images-idx3-ubyte.gz --out mnist/train-images-idx3-ubyte.gz", "is one of the inputs");
    // An image of the folder, a new file in it, and the folder under another name.
    refused("import photos --out photos/1.png", "lies in photos, which is read");
    refused("import photos --out photos/new.h5", "lies in photos, which is read");
    refused("import ./photos/. --out photos/new.h5", "which is read");
    refused("import mnist --out mnist/mnist.h5", "lies in mnist, which is read");
    #[cfg(unix)]
    {
        refused("import way --out photos/new.h5", "lies in way, which is read");
        refused("import photos --out way/new.h5", "lies in photos, which is read");
    }
}

/// What is found only when the sources are looked at: patterns, and labels that lie beside the images.
#[test]
fn what_patterns_and_neighbours_lead_to_is_an_input_too() {
    let place = place();
    let before = contents(&place);
    for line in [
        "import photos/*.png --out photos/1.png --force",
        "import mnist/train-images-idx3-ubyte.gz --out mnist/train-labels-idx1-ubyte --force",
        "fetch mnist --from mnist --out mnist/train-images-idx3-ubyte.gz --force",
    ] {
        let said = place.run_line(line);
        assert_eq!(said.code, if line.starts_with("fetch") { said.code.clamp(1, 2) } else { 2 }, "{line}: {said:?}");
        assert!(contents(&place) == before, "{line} changed something");
    }
    // A neighbour that is not read is no input.
    place.run_line("import photos/0.png --out photos/new.h5").ok();
}

#[test]
fn an_existing_output_needs_force() {
    let place = place();
    for line in [
        "import photos --out out.h5",
        "synth --count 10 --out out.h5",
        "subset set.h5 --count 3 --out out.h5",
        "merge set.h5 set.h5 --out out.h5",
        "preview set.h5 --out out.h5",
        "views set.h5 --out out.h5",
    ] {
        place.write("out.h5", "precious");
        place.run_line(line).fails(2, "out.h5 exists already; add --force to replace it, or choose another name");
        assert_eq!(place.text("out.h5"), "precious");
        place.run_line(&format!("{line} --force")).ok();
        assert_ne!(place.read("out.h5"), b"precious");
    }
    // Told before anything is downloaded.
    place.write("out.h5", "precious");
    let line = "fetch mnist --base-url http://127.0.0.1:9 --cache cache --out out.h5";
    place.run_line(line).fails(2, "out.h5 exists already");
    assert!(!place.path("cache").exists());
}

/// `kill -9` left a hidden file of the size of the output for ever.
#[cfg(unix)]
#[test]
fn what_a_killed_import_left_is_gone_after_the_next_one() {
    let place = Place::of("dtkc-data");
    // Two gigabytes of zeros that take no room on the disk: enough to be stopped in the middle of.
    let mut array = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2000000, 32, 32), }";
    array.extend(format!("{header:<117}\n").bytes());
    let path = place.write("images.npy", &array);
    std::fs::File::options().write(true).open(path).unwrap().set_len(array.len() as u64 + 2_000_000 * 1024).unwrap();
    let import = ["import", "images.npy", "--out", "a.h5", "--quiet"];
    let mut child = place.command().args(import).spawn().unwrap();
    let hidden = || place.names().into_iter().filter(|name| name.starts_with('.')).collect::<Vec<_>>();
    dtkc_testing::wait_until("it writes", || hidden().len() == 2);
    std::process::Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap();
    // A second one is told who the first is, and changes nothing.
    let said = place.run(import);
    let holder = format!("dtkc-data, process {} ", child.id());
    assert!(said.code == 1 && said.err.contains("being written already") && said.err.contains(&holder), "{said:?}");
    assert_eq!(hidden().len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(hidden().len(), 2, "killed before it was done: {:?}", place.names());
    place.run(["import", "images.npy", "--out", "a.h5", "--limit", "10"]).ok();
    assert_eq!(place.names(), ["a.h5", "images.npy"]);
}
