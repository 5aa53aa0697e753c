//! The page in a real browser. Says so where no browser is installed.
#![allow(clippy::unwrap_used)]

mod common;

use common::{K, Server, drawing, model_of, zip_of};
use dtkc_testing::browser::Browser;
use dtkc_testing::wait_for;
use serde_json::json;

const READY: &str = "document.body.dataset.ready === 'yes'";
const ESCAPE: &str = "\u{e00c}";
const ENTER: &str = "\u{e007}";
const RIGHT: &str = "\u{e014}";
const TAB: &str = "\u{e004}";

fn done(count: usize) -> String {
    format!("document.body.dataset.done === '{count}'")
}

/// A server with two models, and files to give to it: 12 images, one that is none, a zip of 3.
fn server_and_files() -> (Server, Vec<std::path::PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.onnx"), common::model(1)).unwrap();
    std::fs::write(folder.path().join("other.onnx"), model_of(2, 20, 3)).unwrap();
    let mut files = Vec::new();
    let mut write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        files.push(path);
    };
    for n in 0..12 {
        write(&format!("digit {n}.png"), &drawing(12, n));
    }
    write("broken.png", b"this is no image");
    let images: Vec<Vec<u8>> = (20..23).map(|n| drawing(40, n)).collect();
    write(
        "more.zip",
        &zip_of(&[
            ("a/one.png", &images[0]),
            ("readme.txt", b"x"),
            ("a/two.png", &images[1]),
            ("three.png", &images[2]),
        ]),
    );
    let [small, other] = ["small.onnx", "other.onnx"].map(|n| folder.path().join(n).to_str().unwrap().to_owned());
    (Server::in_folder(folder, &["--model", &small, "--model", &other]), files)
}

#[test]
fn images_are_grouped_named_viewed_and_saved() {
    let Some(browser) = Browser::start() else { return };
    let (server, files) = server_and_files();
    browser.open(&server.url);
    browser.wait(READY);
    browser.wait(&format!("document.querySelectorAll('#known .chip').length === {K}"));
    browser.screenshot("1-empty-light");
    let files: Vec<&std::path::Path> = files.iter().map(|f| f.as_path()).collect();
    browser.choose("#files", &files);
    browser.wait(&done(16));
    browser.screenshot("2-groups-light");

    // 15 images in clusters, in agreement with the service; one that cannot be used.
    assert_eq!(browser.run("return document.querySelectorAll('.thumb').length"), json!(15));
    let failed = browser.run("return document.querySelector('.failed').textContent");
    assert!(
        failed.as_str().unwrap().contains("broken.png") && failed.as_str().unwrap().contains("not an image"),
        "{failed}"
    );
    let expected = server.post("/v1/assign", "image/png", &drawing(12, 0)).json()["images"][0]["cluster"].clone();
    let shown = browser.run("return document.querySelector('[title=\"digit 0.png\"]').closest('.cluster').id");
    assert_eq!(shown, json!(format!("cluster-{expected}")));
    let loaded =
        browser.run("return [...document.querySelectorAll('.thumb img')].filter((i) => i.naturalWidth > 0).length");
    assert_eq!(loaded, json!(15), "thumbnails are shown, those of the zip too");

    assert_eq!(browser.run("return document.querySelector('#known').hidden"), json!(true));

    // A name, by keyboard.
    browser.run(&format!("document.querySelector('#cluster-{expected} .name').focus()"));
    browser.press(ENTER);
    browser.wait("document.querySelector('.rename')");
    browser.press("=my <b>favourites</b>");
    browser.press(ENTER);
    browser.wait("document.querySelector('#notes').textContent.includes('favourites')");
    // The page is drawn with the next frame.
    browser.wait(&format!("document.querySelector('#cluster-{expected} .name').textContent.includes('favourites')"));
    let name = browser.run(&format!("return document.querySelector('#cluster-{expected} .name').textContent"));
    assert_eq!(name, json!("=my <b>favourites</b>"));
    assert_eq!(server.get("/v1/models/small").json()["clusters"][expected.as_u64().unwrap() as usize]["name"], name);

    // One image with all its probabilities; the arrow shows the next one; Escape closes.
    browser.click(".thumb");
    browser.wait(&format!("document.querySelectorAll('#viewer-bars li').length === {K}"));
    browser.screenshot("3-viewer-light");
    let first = browser.run("return document.querySelector('#viewer-name').textContent");
    let sum = browser.run("return [...document.querySelectorAll('#viewer-bars li')].reduce((s, li) => s + parseFloat(li.style.getPropertyValue('--part')), 0)");
    assert!((sum.as_f64().unwrap() - 100.0).abs() < 0.1, "{sum}");
    browser.press(RIGHT);
    browser.wait(&format!("document.querySelector('#viewer-name').textContent !== {first}"));
    browser.press(ESCAPE);
    browser.wait("!document.querySelector('#viewer').open");

    // The table on the disk. The browser makes the file first and fills it later.
    browser.click("#csv");
    let path = browser.downloads().join("small-clusters.csv");
    let whole = |text: &String| text.ends_with('\n') && text.lines().count() == 17;
    let text = wait_for("the table is there, a head and 16 rows", || std::fs::read_to_string(&path).ok().filter(whole));
    assert!(
        text.starts_with("name,cluster,cluster_name,confidence,code,error\r\n") && text.contains("a/one.png,"),
        "{text}"
    );

    assert!(text.contains(",'=my <b>favourites</b>,"), "a name is no formula: {text}");

    // The other model, with the same images.
    browser.run("const s = document.querySelector('#model'); s.value = 'other'; s.dispatchEvent(new Event('change'))");
    browser.wait(&format!("{} && document.querySelector('#figures').textContent.includes('of 3')", done(16)));
    assert_eq!(browser.run("return document.querySelectorAll('.thumb').length"), json!(15));
    browser.click("#clear");
    browser.wait("document.querySelectorAll('.thumb').length === 0 && document.querySelector('#summary').hidden");
    browser.wait("document.querySelectorAll('#known .chip').length === 3 && !document.querySelector('#known').hidden");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn images_can_be_dropped_and_pasted() {
    let Some(browser) = Browser::start() else { return };
    let (server, _files) = server_and_files();
    browser.open(&server.url);
    browser.wait(READY);
    let make = "const canvas = document.createElement('canvas'); canvas.width = canvas.height = 12; \
                const blob = await new Promise((done) => canvas.toBlob(done)); \
                const data = new DataTransfer(); data.items.add(new File([blob], 'mine.png', {type: 'image/png'}));";
    browser.run(&format!(
        "(async () => {{ {make} dispatchEvent(new DragEvent('dragover', {{dataTransfer: data}})); }})()"
    ));
    browser.wait("!document.querySelector('#veil').hidden");
    browser.run(&format!("(async () => {{ {make} dispatchEvent(new DragEvent('drop', {{dataTransfer: data}})); }})()"));
    browser.wait(&done(1));
    assert_eq!(browser.run("return document.querySelector('#veil').hidden"), json!(true));
    browser.run(&format!("(async () => {{ {make} document.body.dispatchEvent(new ClipboardEvent('paste', {{clipboardData: data, bubbles: true}})); }})()"));
    browser.wait(&done(2));
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn it_fits_a_phone_and_follows_dark_mode() {
    let Some(browser) = Browser::start() else { return };
    let (server, files) = server_and_files();
    browser.open(&server.url);
    browser.wait(READY);
    let light = browser.run("return getComputedStyle(document.body).backgroundColor");
    browser.dark(true);
    browser.wait(&format!("getComputedStyle(document.body).backgroundColor !== {light}"));
    browser.screenshot("4-empty-dark");
    let files: Vec<&std::path::Path> = files.iter().map(|f| f.as_path()).collect();
    browser.choose("#files", &files);
    browser.wait(&done(16));
    browser.screenshot("5-groups-dark");
    browser.click(".thumb");
    browser.wait("document.querySelector('#viewer').open");
    browser.screenshot("6-viewer-dark");
    browser.press(ESCAPE);
    for dark in [true, false] {
        browser.dark(dark);
        browser.resize(360, 740);
        browser.wait("innerWidth === 360");
        browser.wait("document.getAnimations().length === 0");
        let wide = browser.run("return document.documentElement.scrollWidth");
        assert_eq!(wide, json!(360), "it scrolls sideways on a phone");
        browser.screenshot(if dark { "7-phone-dark" } else { "8-phone-light" });
        browser.click(".thumb");
        browser.wait("document.querySelector('#viewer').open");
        browser.screenshot(if dark { "9-phone-viewer-dark" } else { "10-phone-viewer-light" });
        browser.press(ESCAPE);
    }
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn everything_is_reached_with_the_keyboard() {
    let Some(browser) = Browser::start() else { return };
    let (server, files) = server_and_files();
    browser.open(&server.url);
    browser.wait(READY);
    browser.choose("#files", &[&files[0], &files[1]]);
    browser.wait(&done(2));
    let mut reached = Vec::new();
    for _ in 0..30 {
        browser.press(TAB);
        let what = browser.run("const e = document.activeElement; return e.id || e.className || e.textContent");
        reached.push(what.as_str().unwrap().to_owned());
    }
    for wanted in ["model", "choose", "order", "sort", "csv", "clear", "name", "thumb"] {
        assert!(reached.iter().any(|r| r.split(' ').any(|w| w == wanted)), "{wanted} is not reached: {reached:?}");
    }
}

/// A model file is replaced while the page is open: nothing of the old one stays, and no script breaks.
#[test]
fn a_replaced_model_is_noticed_and_the_images_are_sorted_again() {
    let Some(browser) = Browser::start() else { return };
    let (server, files) = server_and_files();
    browser.open(&server.url);
    browser.wait(READY);
    let files: Vec<&std::path::Path> = files.iter().map(|f| f.as_path()).collect();
    browser.choose("#files", &files[..6]);
    browser.wait(&done(6));
    let more = 2 * K;
    std::fs::write(server.model_path(), model_of(9, common::SIDE, more)).unwrap();
    assert_eq!(server.post_with("/v1/models/small/reload", &[], b"").json()["changed"], true);
    browser.choose("#files", &files[6..12]);
    browser.wait("document.querySelector('#notes').textContent.includes('replaced')");
    browser.wait(&done(12));
    for n in 0..12 {
        let expected = server.post("/v1/assign", "image/png", &drawing(12, n)).json()["images"][0]["cluster"].clone();
        let shown = format!("return document.querySelector('[title=\"digit {n}.png\"]').closest('.cluster').id");
        assert_eq!(browser.run(&shown), json!(format!("cluster-{expected}")), "digit {n}");
    }
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Two clusters become one in the model's file, the images are sorted again, and all of it is taken back.
#[test]
fn clusters_are_merged_and_parted_again() {
    let Some(browser) = Browser::start() else { return };
    let server = Server::start(&["--allow-edits"]);
    let files: Vec<std::path::PathBuf> = (0..12)
        .map(|n| {
            let path = server.folder.path().join(format!("digit {n}.png"));
            std::fs::write(&path, drawing(12, n)).unwrap();
            path
        })
        .collect();
    browser.open(&server.url);
    browser.wait(READY);
    let files: Vec<&std::path::Path> = files.iter().map(|f| f.as_path()).collect();
    browser.choose("#files", &files);
    browser.wait(&done(12));
    let shown = "[...document.querySelectorAll('#results .cluster')].map((c) => c.id)";
    let first = browser.run(&format!("return {shown}[0]"));
    let first = first.as_str().unwrap();
    browser.click(&format!("#{first} .join"));
    browser.wait("document.querySelector('#merge').open");
    assert_eq!(browser.run("return document.querySelectorAll('#merge-with option').length"), json!(K - 1));
    browser.screenshot("9-merge");
    browser.press(ESCAPE);
    browser.wait("!document.querySelector('#merge').open");
    assert_eq!(server.get("/v1/models/small").json()["k"], K, "Escape merges nothing");
    browser.click(&format!("#{first} .join"));
    browser.wait("document.querySelector('#merge').open");
    browser.click("#merge button[value=ok]");
    browser.wait(&format!("{} && document.querySelector('#figures').textContent.includes('of {}')", done(12), K - 1));
    assert_eq!(server.get("/v1/models/small").json()["k"], K - 1);
    for n in 0..12 {
        let expected = server.post("/v1/assign", "image/png", &drawing(12, n)).json()["images"][0]["cluster"].clone();
        let place = format!("return document.querySelector('[title=\"digit {n}.png\"]').closest('.cluster').id");
        assert_eq!(browser.run(&place), json!(format!("cluster-{expected}")), "digit {n}");
    }
    browser.run("document.querySelector('#about').open = true");
    browser.screenshot("10-merged");
    browser.click("#undo");
    browser.wait(&format!("{} && document.querySelector('#figures').textContent.includes('of {K}')", done(12)));
    assert_eq!(browser.run("return document.querySelector('#undo')"), json!(null));
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// A cluster becomes two by the images of it that are on the page, and one again.
#[test]
fn a_cluster_is_split_by_the_images_on_the_page() {
    let Some(browser) = Browser::start() else { return };
    let server = Server::start(&["--allow-edits"]);
    let files: Vec<std::path::PathBuf> = (0..40)
        .map(|n| {
            let path = server.folder.path().join(format!("digit {n}.png"));
            std::fs::write(&path, drawing(12, n)).unwrap();
            path
        })
        .collect();
    browser.open(&server.url);
    browser.wait(READY);
    let files: Vec<&std::path::Path> = files.iter().map(|f| f.as_path()).collect();
    browser.choose("#files", &files);
    browser.wait(&done(40));
    let largest = "[...document.querySelectorAll('#results .cluster')].sort((a, b) => b.querySelectorAll('li').length - a.querySelectorAll('li').length)[0].id";
    let largest = browser.run(&format!("return {largest}"));
    let largest = largest.as_str().unwrap();
    let id: usize = largest.trim_start_matches("cluster-").parse().unwrap();
    browser.click(&format!("#{largest} .part"));
    browser.wait("document.querySelector('#split').open");
    browser.screenshot("11-split");
    browser.press(ESCAPE);
    browser.wait("!document.querySelector('#split').open");
    assert_eq!(server.get("/v1/models/small").json()["k"], K, "Escape splits nothing");
    browser.click(&format!("#{largest} .part"));
    browser.wait("document.querySelector('#split').open");
    browser.click("#split-ok");
    browser.wait(&format!("{} && document.querySelector('#figures').textContent.includes('of {}')", done(40), K + 1));
    let model = server.get("/v1/models/small").json();
    assert_eq!(model["edits"], json!([format!("split {id}")]));
    assert!(browser.run(&format!("return document.querySelectorAll('#cluster-{K} li').length")).as_u64().unwrap() > 0);
    for n in 0..40 {
        let expected = server.post("/v1/assign", "image/png", &drawing(12, n)).json()["images"][0]["cluster"].clone();
        let place = format!("return document.querySelector('[title=\"digit {n}.png\"]').closest('.cluster').id");
        assert_eq!(browser.run(&place), json!(format!("cluster-{expected}")), "digit {n}");
    }
    browser.run("document.querySelector('#about').open = true");
    browser.screenshot("12-parted");
    browser.click("#undo");
    browser.wait(&format!("{} && document.querySelector('#figures').textContent.includes('of {K}')", done(40)));
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn a_key_is_asked_for_and_remembered() {
    let Some(browser) = Browser::start() else { return };
    let server = Server::start(&["--api-key", "open-sesame"]);
    browser.open(&server.url);
    browser.wait("document.querySelector('#ask').open");
    browser.type_into("#ask-key", "wrong");
    browser.press(ENTER);
    browser.wait(
        "document.querySelector('#ask').open && document.querySelector('#ask-text').textContent.includes('not valid')",
    );
    browser.type_into("#ask-key", "open-sesame");
    browser.press(ENTER);
    browser.wait(READY);
    browser.open(&server.url);
    browser.wait(READY);
}

#[test]
fn the_docs_work_without_anything_from_outside() {
    let Some(browser) = Browser::start() else { return };
    let server = Server::start(&[]);
    browser.open(&format!("{}/docs", server.url));
    browser.wait("document.querySelectorAll('.opblock').length > 10");
    browser.screenshot("11-docs");
    let from = browser.run("return performance.getEntriesByType('resource').map((e) => new URL(e.name).origin)");
    let from: Vec<&str> = from.as_array().unwrap().iter().map(|o| o.as_str().unwrap()).collect();
    assert!(from.iter().all(|o| *o == server.url || *o == "null"), "{from:?}");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn a_table_is_drawn_and_its_sequences_are_grouped() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pens.onnx"), dtkc_testing::model::sequence_model(3, 2)).unwrap();
    let mut table = "id,x,y\n".to_owned();
    for number in 0..12 {
        for step in 0..20 {
            let turn = step as f32 * 0.3 * (1.0 + number as f32 / 4.0);
            table += &format!("pen {number},{},{}\n", turn.cos() * number as f32, turn.sin());
        }
    }
    let path = folder.path().join("pens.csv");
    std::fs::write(&path, &table).unwrap();
    let wrong = folder.path().join("three.csv");
    std::fs::write(&wrong, "x,y,z\n1,2,3\n").unwrap();
    let model = folder.path().join("pens.onnx").to_str().unwrap().to_owned();
    let server = Server::in_folder(folder, &["--model", &model]);
    browser.open(&server.url);
    browser.wait(READY);
    assert_eq!(browser.run("return document.querySelector('#choose').textContent"), json!("Choose tables"));
    browser.choose("#files", &[&path, &wrong]);
    browser.wait(&done(13));
    browser.screenshot("sequences-light");
    assert_eq!(browser.run("return document.querySelectorAll('.thumb').length"), json!(12));
    let drawn = "return [...document.querySelectorAll('.thumb img')].filter((i) => i.naturalWidth === 160).length";
    assert_eq!(browser.run(drawn), json!(12));
    let failed = browser.run("return document.querySelector('.failed').textContent");
    assert!(failed.as_str().unwrap().contains("3 values a step and the model takes 2"), "{failed}");
    let answer = server.post("/v1/assign", "text/csv", table.as_bytes()).json();
    for one in answer["sequences"].as_array().unwrap() {
        let name = one["name"].as_str().unwrap();
        let shown = browser.run(&format!("return document.querySelector('[title=\"{name}\"]').closest('.cluster').id"));
        assert_eq!(shown, json!(format!("cluster-{}", one["cluster"])));
    }
}
