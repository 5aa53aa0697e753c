//! The map: what surrounds it, and its items as packed numbers that the script unpacks.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dtkc_human::count;
use serde::Serialize;

use super::text::{color, embedded, escape};
use crate::model::{Map, Report};

/// Names may take so much of the page; longer ones are left out.
const NAMES: usize = 2_000_000;
/// What stands for "not known" in packed numbers.
const UNKNOWN: u16 = u16::MAX;

pub fn section(report: &Report) -> String {
    let Some(map) = &report.map else { return String::new() };
    let (kind, one) = (escape(&report.about.kind), escape(&report.about.one));
    let shown = match map.items.len() == map.of {
        true => format!("Every point is one {one}."),
        false => format!(
            "Every point is one {one}; {} of {} are shown, an even sample.",
            count(map.items.len() as u64),
            count(map.of as u64)
        ),
    };
    let near = match map.near.is_empty() {
        true => String::new(),
        false => "<option value=\"near\">neighbours</option>".into(),
    };
    let mut colours = vec![("cluster", "cluster"), ("confidence", "confidence")];
    if !map.consensus.is_empty() {
        colours.push(("consensus", "agreement of restarts"));
    }
    if !map.labels.is_empty() {
        colours.push(("label", "label (not used)"));
    }
    let colours: String =
        colours.iter().map(|(value, name)| format!("<option value=\"{value}\">{name}</option>")).collect();
    let meaning = match map.near.is_empty() {
        true => "",
        false => {
            " On the map of <i>neighbours</i> what is close is alike, while distances between far islands and their sizes say little."
        }
    };
    format!(
        r#"<div class="card"><h2>Map</h2><p class="hint">{shown}{meaning} <i>Main axes</i> is the plain projection (PCA) that keeps most of the variance ({:.0} % and {:.0} %).
Point at one to see it. Draw around some with the lasso to list them.</p>
<div class="tools"><label>place by <select id="map-place">{near}<option value="axes">main axes</option></select></label>
<label>colour by <select id="map-colour">{colours}</select></label>
<button type="button" id="map-lasso" aria-pressed="false">lasso</button><button type="button" id="map-in" aria-label="closer">+</button><button type="button" id="map-out" aria-label="further away">−</button><button type="button" id="map-whole">whole map</button></div>
<div id="map-box"><canvas id="map-canvas" tabindex="0" role="img" aria-label="Map of {kind}. Arrow keys go from point to point, Enter selects, plus and minus zoom, L draws a lasso, Escape clears."></canvas>
<div id="map-tip" hidden><canvas width="10" height="10"></canvas><p></p></div></div>
<div id="map-legend" class="legend-chips"></div><p class="sr" id="map-said" aria-live="polite"></p>
<div id="map-chosen" hidden><p></p><div class="tools"><button type="button" id="map-save">save list (CSV)</button><button type="button" id="map-clear">clear</button></div><ul class="strip"></ul></div></div>"#,
        100.0 * map.shares[0],
        100.0 * map.shares[1],
    )
}

/// What the script is told.
#[derive(Serialize)]
struct Facts<'a> {
    kind: &'a str,
    one: &'a str,
    colors: Vec<String>,
    labels: &'a [String],
    tiles: Option<Sheet>,
    /// The length of the beginning that a name shares with the one before, and the rest of it, in turn.
    names: Option<Vec<Name>>,
}

#[derive(Serialize)]
struct Sheet {
    width: usize,
    height: usize,
    step: [usize; 2],
    across: usize,
    per_sheet: usize,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Name {
    Shared(usize),
    Rest(String),
}

/// The items, as elements that a browser does not show.
pub fn data(report: &Report) -> String {
    let Some(map) = &report.map else { return String::new() };
    let about = &report.about;
    let tiles = map.tiles.as_ref().map(|tiles| Sheet {
        width: tiles.width,
        height: tiles.height,
        step: tiles.step,
        across: tiles.across,
        per_sheet: tiles.per_sheet,
    });
    let colors = (0..about.clusters).map(|cluster| color(cluster, about.clusters)).collect();
    let names = short_names(&map.names);
    let facts = Facts { kind: &about.kind, one: &about.one, colors, labels: &map.label_names, tiles, names };
    let mut out = embedded("map-facts", &facts);
    out += &packed("items", map.items.iter().flat_map(|item| item.to_le_bytes()));
    out += &packed("axes", places(&map.axes));
    out += &packed("near", places(&map.near));
    out += &packed("clusters", map.clusters.iter().flat_map(|c| c.to_le_bytes()));
    out += &packed("seconds", map.seconds.iter().flat_map(|c| c.to_le_bytes()));
    out += &packed("confidence", map.confidence.iter().map(|c| part(*c)));
    out += &packed("consensus", map.consensus.iter().map(|c| c.map_or(u8::MAX, part)));
    out += &packed("labels", map.labels.iter().flat_map(|l| l.unwrap_or(UNKNOWN).to_le_bytes()));
    out += &sheets(map);
    out
}

fn sheets(map: &Map) -> String {
    let Some(tiles) = &map.tiles else { return String::new() };
    let sheet = |at: usize| format!("<script type=\"text/plain\" id=\"sheet-{at}\">{}</script>\n", tiles.text(at));
    (0..tiles.sheets.len()).map(sheet).collect()
}

fn packed(name: &str, bytes: impl Iterator<Item = u8>) -> String {
    let bytes: Vec<u8> = bytes.collect();
    if bytes.is_empty() {
        return String::new();
    }
    format!("<script type=\"text/plain\" id=\"map-{name}\">{}</script>\n", STANDARD.encode(bytes))
}

/// A number between 0 and 1 as one of 0 to 254; 255 means that it is not known.
fn part(value: f32) -> u8 {
    (value.clamp(0.0, 1.0) * 254.0).round() as u8
}

/// Places in a square of 65,536 steps, both axes on one scale.
fn places(places: &[[f32; 2]]) -> impl Iterator<Item = u8> + '_ {
    let range = |axis: usize| {
        let values = places.iter().map(move |place| place[axis]);
        values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let ranges = [range(0), range(1)];
    let size = ranges.iter().map(|(low, high)| high - low).fold(f32::MIN_POSITIVE, f32::max);
    let middle = ranges.map(|(low, high)| f32::midpoint(low, high));
    let scaled =
        move |place: &[f32; 2], axis: usize| (((place[axis] - middle[axis]) / size + 0.5) * 65_535.0).round() as u16;
    places.iter().flat_map(move |place| [scaled(place, 0), scaled(place, 1)]).flat_map(u16::to_le_bytes)
}

/// Names without what they share with the one before; `None` where there are none or they take too much.
fn short_names(names: &[String]) -> Option<Vec<Name>> {
    let mut out = Vec::with_capacity(2 * names.len());
    let (mut before, mut size): (Vec<u16>, usize) = (Vec::new(), 0);
    for name in names {
        // Counted as the script counts, in units of UTF-16; a pair of them is not cut.
        let units: Vec<u16> = name.encode_utf16().collect();
        let mut shared = before.iter().zip(&units).take_while(|(a, b)| a == b).count();
        if shared > 0 && (0xd800..0xdc00).contains(&units[shared - 1]) {
            shared -= 1;
        }
        let rest = String::from_utf16_lossy(&units[shared..]);
        size += rest.len() + 6;
        if size > NAMES {
            return None;
        }
        out.extend([Name::Shared(shared), Name::Rest(rest)]);
        before = units;
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_what_they_do_not_share() {
        let names = ["a/one.png", "a/one2.png", "a/\u{1f600}x", "a/\u{1f601}x", "", "b"].map(String::from);
        let json = serde_json::to_value(short_names(&names).unwrap()).unwrap();
        let mut before: Vec<u16> = Vec::new();
        for (pair, name) in json.as_array().unwrap().chunks(2).zip(&names) {
            before.truncate(pair[0].as_u64().unwrap() as usize);
            before.extend(pair[1].as_str().unwrap().encode_utf16());
            assert_eq!(&String::from_utf16(&before).unwrap(), name);
        }
        assert!(short_names(&[]).is_none());
        assert!(short_names(&["x".repeat(NAMES)]).is_none());
    }

    #[test]
    fn places_keep_their_proportions() {
        let bytes: Vec<u8> = places(&[[0.0, 0.0], [10.0, 5.0]]).collect();
        let numbers: Vec<u16> = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        assert_eq!(numbers, [0, 16_384, 65_535, 49_151]);
        assert_eq!(places(&[[3.0, 3.0]]).count(), 4, "one point is in the middle");
    }
}
