//! The page in a real browser, from a file as a mail's attachment would be. Says so where no browser is installed.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Items, report};
use dtkc_report::Report;
use dtkc_testing::browser::Browser;
use dtkc_testing::wait_for;
use serde_json::{Value, json};

const READY: &str = "document.body.dataset.ready === 'yes'";
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const RIGHT: &str = "\u{e014}";
const ESCAPE: &str = "\u{e00c}";
const N: usize = 400;
const K: usize = 4;

fn open(browser: &Browser, report: &Report) {
    let path = browser.folder.path().join("report.html");
    std::fs::write(&path, dtkc_report::html(report)).unwrap();
    browser.open(&format!("file://{}", path.display()));
    browser.wait(READY);
}

/// Where an item is in the window.
fn place(browser: &Browser, item: usize) -> [f64; 2] {
    let place = browser.run(&format!("return document.getElementById('map-canvas').where({item})"));
    [place[0].as_f64().unwrap(), place[1].as_f64().unwrap()]
}

fn to_map(browser: &Browser) {
    browser.run("document.getElementById('map-canvas').scrollIntoView({block: 'center', behavior: 'instant'})");
}

/// A ring around all items of a cluster.
fn ring(browser: &Browser, cluster: usize) -> Vec<[f64; 2]> {
    let all: Vec<[f64; 2]> = (0..N).filter(|item| item % K == cluster).map(|item| place(browser, item)).collect();
    let end = |axis: usize, pick: fn(f64, f64) -> f64, from: f64| all.iter().map(|p| p[axis]).fold(from, pick);
    let (left, right) = (end(0, f64::min, f64::MAX) - 5.0, end(0, f64::max, 0.0) + 5.0);
    let (top, bottom) = (end(1, f64::min, f64::MAX) - 5.0, end(1, f64::max, 0.0) + 5.0);
    vec![[left, top], [right, top], [right, bottom], [left, bottom], [left, top]]
}

#[test]
fn all_parts_are_there_and_nothing_comes_from_outside() {
    let Some(browser) = Browser::start() else { return };
    open(&browser, &report(N, K));
    browser.screenshot("report-1-light");
    let parts = browser.run("return [...document.querySelectorAll('main > section')].map((s) => s.id)");
    assert_eq!(parts, json!(["head", "clusters", "pairs", "map", "agreement", "training", "labels"]));
    let outside = browser.run(
        "return performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !n.startsWith('data:'))",
    );
    assert_eq!(outside, json!([]));
    let first = "document.querySelector('.cluster img').naturalWidth";
    browser.wait(&format!("{first} === {}", common::SIDE));
    // A name from the data is text and no element.
    assert_eq!(browser.run("return document.querySelector('h1').textContent"), json!("drawn <shapes>"));
    for id in ["clusters", "pairs", "map", "agreement", "training", "labels"] {
        browser.run(&format!("document.getElementById('{id}').scrollIntoView({{behavior: 'instant'}})"));
        browser.screenshot(&format!("report-2-{id}"));
    }
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn a_point_shows_its_own_picture() {
    let Some(browser) = Browser::start() else { return };
    open(&browser, &report(N, K));
    to_map(&browser);
    for item in [7, 42, N - 1] {
        browser.pointer(&[place(&browser, item)], false);
        browser.wait(&format!("document.querySelector('#map-tip canvas').dataset.item === '{item}'"));
        let tip = browser.run("return document.querySelector('#map-tip p').textContent");
        let tip = tip.as_str().unwrap();
        assert!(
            tip.contains(&format!("shapes/{item:05}.png")) && tip.contains(&format!("cluster {},", item % K)),
            "{tip}"
        );
        let script = "const c = document.querySelector('#map-tip canvas'); \
                      return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, i) => i % 4 === 0)";
        let seen = browser.run(script);
        let drawn = common::shape(item % K, item).bytes;
        let differences = seen
            .as_array()
            .unwrap()
            .iter()
            .zip(&drawn)
            .filter(|(a, b)| (a.as_i64().unwrap() - i64::from(**b)).abs() > 60);
        let differences = differences.count();
        assert!(differences < drawn.len() / 50, "{differences} pixels of item {item} are others");
    }
    browser.screenshot("report-3-hover");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn a_lasso_selects_and_the_list_is_saved() {
    let Some(browser) = Browser::start() else { return };
    open(&browser, &report(N, K));
    browser.click("#map-lasso");
    to_map(&browser);
    browser.pointer(&ring(&browser, 1), true);
    browser.wait(&format!("document.getElementById('map-chosen').dataset.count === '{}'", N / K));
    browser.screenshot("report-4-lasso");
    browser.click("#map-save");
    let path = browser.downloads().join("selection.csv");
    let text = wait_for("selection.csv", || std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n')));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("index,path,cluster,confidence,second,label"));
    let expected: Vec<String> =
        (0..N).filter(|item| item % K == 1).map(|item| format!("{item},shapes/{item:05}.png,1")).collect();
    let found: Vec<String> = lines.map(|line| line.splitn(4, ',').take(3).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(found, expected);
    browser.click("#map-clear");
    browser.wait("document.getElementById('map-chosen').hidden");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn clusters_change_their_order_and_the_map_its_colours() {
    let Some(browser) = Browser::start() else { return };
    open(&browser, &report(N, K));
    let order = |browser: &Browser| {
        browser.run("return [...document.querySelectorAll('.cluster')].map((c) => Number(c.dataset.cluster))")
    };
    assert_eq!(order(&browser), json!([0, 1, 2, 3]));
    browser.click("[data-order=confidence]");
    // Confidence is .99 - .03 (7 c mod 10).
    assert_eq!(order(&browser), json!([1, 2, 3, 0]));
    browser.click("[data-order=cluster]");
    assert_eq!(order(&browser), json!([0, 1, 2, 3]));
    let choose = |id: &str, value: &str| {
        browser.run(&format!(
            "const s = document.getElementById('{id}'); s.value = '{value}'; s.dispatchEvent(new Event('change'))"
        ));
    };
    let chips = "return document.querySelectorAll('#map-legend .chip:not([hidden])').length";
    assert_eq!(browser.run(chips), json!(K));
    choose("map-colour", "label");
    assert_eq!(browser.run(chips), json!(K + 1), "every class, and items without one");
    choose("map-colour", "confidence");
    assert_eq!(browser.run(chips), json!(0));
    choose("map-colour", "consensus");
    let before = place(&browser, 5);
    choose("map-place", "axes");
    assert_ne!(place(&browser, 5), before);
    browser.click("button[data-restart=\"0\"]");
    let front = "return [...document.querySelectorAll('.line.front')].every((l) => l.dataset.restart === '0')";
    assert_eq!(browser.run(front), json!(true));
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn it_fits_a_phone_a_sheet_of_paper_and_dark_mode() {
    let Some(browser) = Browser::start() else { return };
    open(&browser, &report(N, K));
    let background = "return getComputedStyle(document.body).backgroundColor";
    let light = browser.run(background);
    browser.dark(true);
    browser.wait(&format!("getComputedStyle(document.body).backgroundColor !== {light}"));
    to_map(&browser);
    browser.screenshot("report-5-dark");
    for dark in [true, false] {
        browser.dark(dark);
        browser.resize(360, 740);
        browser.wait("innerWidth === 360");
        assert_eq!(
            browser.run("return document.documentElement.scrollWidth"),
            json!(360),
            "it scrolls sideways on a phone"
        );
        browser.run("scrollTo(0, 0)");
        browser.screenshot(if dark { "report-6-phone-dark" } else { "report-7-phone-light" });
    }
    browser.resize(800, 1100);
    browser.dark(true);
    browser.on_paper(true);
    browser.wait("getComputedStyle(document.querySelector('nav')).display === 'none'");
    assert_eq!(browser.run(background), json!("rgb(255, 255, 255)"), "paper is white");
    browser.screenshot("report-8-paper");
    assert_eq!(browser.log(), Vec::<String>::new());
}

#[test]
fn everything_is_reached_with_the_keyboard() {
    let Some(browser) = Browser::start() else { return };
    open(&browser, &report(N, K));
    let mut reached = Vec::new();
    for _ in 0..60 {
        browser.press(TAB);
        let what = browser
            .run("const e = document.activeElement; return e.id || e.dataset.order || e.getAttribute('href') || ''");
        reached.push(what.as_str().unwrap().to_owned());
        if reached.last().is_some_and(|id| id == "map-canvas") {
            break;
        }
    }
    for wanted in ["#map", "confidence", "map-place", "map-colour", "map-lasso", "map-in", "map-whole", "map-canvas"] {
        assert!(reached.iter().any(|r| r == wanted), "{wanted} is not reached: {reached:?}");
    }
    let point = || browser.run("return document.getElementById('map-canvas').dataset.point");
    browser.press(RIGHT);
    let first = point();
    browser.press(RIGHT);
    assert_ne!(point(), first, "an arrow key goes on to another point");
    assert!(first.is_string() && first != json!(""), "{first}");
    browser.press(ENTER);
    assert_eq!(browser.run("return document.getElementById('map-chosen').dataset.count"), json!("1"));
    browser.press(ESCAPE);
    assert_eq!(browser.run("return document.getElementById('map-chosen').hidden"), json!(true));
}

/// What does not apply is not there, and its scripts do not miss it.
#[test]
fn a_report_with_little_in_it_opens() {
    let Some(browser) = Browser::start() else { return };
    let whole = report(40, 2);
    let map = whole.map.clone().map(|map| dtkc_report::Map {
        near: vec![],
        consensus: vec![],
        labels: vec![],
        names: vec![],
        tiles: None,
        ..map
    });
    let little = Report {
        charts: vec![],
        agreement: None,
        alike: vec![],
        mixed: vec![],
        scores: None,
        doubts: vec![],
        map,
        ..whole.clone()
    };
    open(&browser, &little);
    let parts = browser.run("return [...document.querySelectorAll('main > section')].map((s) => s.id)");
    assert_eq!(parts, json!(["head", "clusters", "map"]));
    to_map(&browser);
    browser.pointer(&[place(&browser, 3)], false);
    browser.wait("!document.getElementById('map-tip').hidden");
    open(&browser, &Report { map: None, clusters: vec![], ..little });
    assert_eq!(browser.log(), Vec::<String>::new());
}

/// Many points and many clusters: all are drawn, and every name is its own.
#[test]
fn sixty_thousand_points_and_a_hundred_clusters() {
    let Some(browser) = Browser::start() else { return };
    let large = report(60_000, 100);
    let size = dtkc_report::html(&large).len();
    assert!(size < 15_000_000, "{size} bytes");
    open(&browser, &large);
    to_map(&browser);
    let item = 54_321;
    browser.pointer(&[place(&browser, item)], false);
    browser.wait("document.getElementById('map-canvas').dataset.point !== ''");
    let seen: Value = browser.run("return Number(document.getElementById('map-canvas').dataset.point)");
    // Points are dense: another of the same heap may lie under the pointer.
    assert_eq!(seen.as_u64().unwrap() as usize % 100, Items { k: 100 }.cluster(item));
    browser.wait(&format!("document.querySelector('#map-tip canvas').dataset.item === '{seen}'"));
    let name = format!("shapes/{:05}.png", seen.as_u64().unwrap());
    assert!(browser.run("return document.querySelector('#map-tip p').textContent").as_str().unwrap().contains(&name));
    browser.screenshot("report-9-large");
    assert_eq!(browser.log(), Vec::<String>::new());
}
