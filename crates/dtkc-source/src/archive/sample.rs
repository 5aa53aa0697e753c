//! Samples of a WebDataset: entries that follow each other and have the same name up to the first dot. Beside an image lie
//! its class (`.cls`) and other facts (`.json`), before it or behind it.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::Value;

use crate::{Body, Found, Visitor};

/// Bytes of a file with facts about an image; larger ones are not read.
const MAX_FACTS: u64 = 1 << 20;
/// Images of one sample that wait for their class: more of them, or of more bytes, are no sample.
const MAX_HELD: usize = 16;
const MAX_HELD_BYTES: u64 = 64 << 20;
/// Where facts say the class.
const KEYS: [&str; 7] = ["cls", "label", "class", "class_name", "label_name", "category", "target"];

/// The sample that is being read.
#[derive(Default)]
pub(super) struct Sample {
    key: String,
    class: Option<Arc<str>>,
    held: Vec<Found>,
    bytes: u64,
}

/// What a companion says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Companion {
    /// The class, as text.
    Class,
    /// Facts, as JSON.
    Facts,
}

impl Companion {
    /// What a file says, by its name.
    pub(super) fn of(name: &str) -> Option<Self> {
        match split(name).1.to_ascii_lowercase().as_str() {
            "cls" | "class" | "label" => Some(Self::Class),
            "json" => Some(Self::Facts),
            _ => None,
        }
    }

    /// The class in such a file.
    fn class(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Class => word(&String::from_utf8_lossy(bytes)),
            Self::Facts => {
                let facts: Value = serde_json::from_slice(bytes).ok()?;
                KEYS.iter().find_map(|key| match facts.get(key)? {
                    Value::String(text) => word(text),
                    Value::Number(number) => number.as_i64().map(|number| number.to_string()),
                    _ => None,
                })
            }
        }
    }
}

/// A class in one short line.
fn word(text: &str) -> Option<String> {
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= 256 && !text.contains(char::is_control);
    fits.then(|| text.to_owned())
}

/// The key of a name and what stands behind its first dot.
fn split(name: &str) -> (&str, &str) {
    let file = name.rfind('/').map_or(0, |slash| slash + 1);
    match name[file..].find('.') {
        Some(dot) => (&name[..file + dot], &name[file + dot + 1..]),
        None => (name, ""),
    }
}

impl Sample {
    /// Goes on with an entry. What waits is shown where another sample begins.
    pub(super) fn begin(&mut self, name: &str, visitor: &mut dyn Visitor) -> ControlFlow<()> {
        let key = split(name).0;
        if key == self.key {
            return ControlFlow::Continue(());
        }
        let flow = self.show(visitor);
        key.clone_into(&mut self.key);
        self.class = None;
        flow
    }

    /// Reads a companion; says whether it told a class.
    pub(super) fn learn(&mut self, companion: Companion, size: u64, entry: &mut impl Read) -> io::Result<bool> {
        // What was said as a class of its own is not said again by facts.
        if size > MAX_FACTS || (companion == Companion::Facts && self.class.is_some()) {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        entry.take(MAX_FACTS).read_to_end(&mut bytes)?;
        let class = companion.class(&bytes);
        let told = class.is_some();
        self.class = class.map(Arc::from).or_else(|| self.class.take());
        Ok(told)
    }

    /// Keeps an image until its class is known.
    pub(super) fn hold(&mut self, found: Found, visitor: &mut dyn Visitor) -> ControlFlow<()> {
        self.bytes += if matches!(found.body, Body::Bytes(_)) { found.body.size() } else { 0 };
        self.held.push(found);
        match self.held.len() >= MAX_HELD || self.bytes >= MAX_HELD_BYTES {
            true => self.show(visitor),
            false => ControlFlow::Continue(()),
        }
    }

    /// Shows what waits.
    pub(super) fn show(&mut self, visitor: &mut dyn Visitor) -> ControlFlow<()> {
        self.bytes = 0;
        for found in self.held.drain(..) {
            visitor.found(Found { class: self.class.clone(), ..found })?;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Passed;
    use crate::archive::tar::visit;
    use crate::testing::{Log, PNG, gz, tar};

    const LIMIT: u64 = 10_000;

    #[test]
    fn keys_end_at_the_first_dot_of_the_file() {
        assert_eq!(split("a.b/0001.seg.png"), ("a.b/0001", "seg.png"));
        assert_eq!((split("0001"), split("x/.hidden")), (("0001", ""), ("x/", "hidden")));
        assert_eq!(
            (Companion::of("a/1.CLS"), Companion::of("1.json")),
            (Some(Companion::Class), Some(Companion::Facts))
        );
        assert_eq!((Companion::of("1.txt"), Companion::of("1.a.cls"), Companion::of("cls")), (None, None, None));
    }

    #[test]
    fn classes_are_words_or_numbers() {
        let class = |companion: Companion, text: &str| companion.class(text.as_bytes());
        assert_eq!(class(Companion::Class, " 7\n").as_deref(), Some("7"));
        for text in ["", " \n", "two\nlines", &"x".repeat(300)] {
            assert_eq!(class(Companion::Class, text), None, "{text}");
        }
        for (text, expected) in [
            (r#"{"label": 3, "caption": "x"}"#, Some("3")),
            (r#"{"class": "cat", "cls": "dog"}"#, Some("dog")),
            (r#"{"label": ["a"], "category": "b"}"#, Some("b")),
            (r#"{"label": 1.5}"#, None),
            ("[1]", None),
            ("{", None),
        ] {
            assert_eq!(class(Companion::Facts, text).as_deref(), expected, "{text}");
        }
    }

    /// A visitor that asks for classes, and for no more than so many items.
    struct Classes(Log, usize);

    impl Visitor for Classes {
        fn wants_classes(&self) -> bool {
            true
        }
        fn found(&mut self, found: Found) -> ControlFlow<()> {
            let flow = self.0.found(found);
            if self.0.found.len() == self.1 { ControlFlow::Break(()) } else { flow }
        }
        fn passed(&mut self, passed: Passed<'_>) {
            self.0.passed(passed);
        }
        fn damaged(&mut self, found: Found) -> ControlFlow<()> {
            self.0.damaged(found)
        }
    }

    #[test]
    fn companions_of_a_sample_tell_its_class() {
        let entries: &[(&str, &[u8])] = &[
            ("a/1.cls", b"3"),
            ("a/1.png", b"one"),
            ("a/1.txt", b"a caption"),
            ("a/2.jpg", b"two"),
            ("a/2.json", b"{\"label\": \"cat\"}"),
            ("a/3.left.png", b"three"),
            ("a/3.right.png", b"three"),
            ("a/3.cls", b"7\n"),
            ("a/4.png", b"four"),
            ("a/4.json", b"no facts"),
            ("b.cls", b"9"),
            ("c.png", b"five"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let plain = tar(entries);
        for bytes in [plain.clone(), gz(&plain)] {
            std::fs::write(&path, &bytes).unwrap();
            let mut seen = Classes(Log::default(), 0);
            assert!(visit(&path, LIMIT, &mut seen).is_continue());
            let found: Vec<_> = seen.0.found.iter().map(|f| (f.name(), f.class.as_deref())).collect();
            let three = Some("7");
            assert_eq!(
                found,
                [
                    ("a/1.png", Some("3")),
                    ("a/2.jpg", Some("cat")),
                    ("a/3.left.png", three),
                    ("a/3.right.png", three),
                    ("a/4.png", None),
                    ("c.png", None),
                ]
            );
            // Those that told a class were of use; one without an image told it to nobody.
            let passed: Vec<&str> = seen.0.passed.iter().map(|(name, _)| name.rsplit('/').next().unwrap()).collect();
            assert_eq!(passed, ["1.txt", "4.json"]);
            let mut some = Classes(Log::default(), 3);
            assert!(visit(&path, LIMIT, &mut some).is_break());
            assert_eq!(some.0.found.len(), 3);
            let mut unasked = Log::default();
            assert!(visit(&path, LIMIT, &mut unasked).is_continue());
            assert!(unasked.found.iter().all(|found| found.class.is_none()));
        }
        std::fs::write(&path, &plain[..plain.len() - 2000]).unwrap();
        let mut seen = Classes(Log::default(), 0);
        assert!(visit(&path, LIMIT, &mut seen).is_continue());
        assert_eq!((seen.0.found.len(), seen.0.damaged), (6, 1));
        assert!(matches!(seen.0.found[5].body, Body::Broken(_)) && seen.0.found[4].name() == "a/4.png");
    }

    #[test]
    fn a_sample_without_end_takes_no_memory_without_end() {
        let names: Vec<String> = (0..50).map(|i| format!("one.{i}.png")).collect();
        let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), PNG)).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, tar(&entries)).unwrap();
        let mut seen = Classes(Log::default(), 20);
        assert!(visit(&path, LIMIT, &mut seen).is_break());
        assert_eq!(seen.0.names()[..], names[..20]);
    }
}
