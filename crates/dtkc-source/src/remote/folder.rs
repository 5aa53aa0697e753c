//! A folder of a store: the objects whose names begin with its own, by the rules of a folder on the disk.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use super::{File, noted, stores};
use crate::archive::clean;
use crate::rules::{self, Sought, Verdict};
use crate::{Body, Found, Passed, Reason, Visitor, order};

/// Visits the items of a folder in natural order of the whole names.
pub(crate) fn visit(root: &Path, visitor: &mut dyn Visitor) -> ControlFlow<()> {
    let sought = visitor.sought();
    let mut hidden = HashSet::new();
    let visited = each_object(root, true, &mut |name, url, size| {
        let name = clean(name);
        if let Some(end) = hidden_end(&name) {
            // As on the disk a hidden folder is told once, not every file in it.
            if !hidden.contains(&name[..end]) {
                hidden.insert(name[..end].to_owned());
                visitor.passed(Passed { root, name: &name[..end], reason: Reason::Hidden });
            }
            return ControlFlow::Continue(());
        }
        match judge(&name, url, sought) {
            None => visitor.found(Found::below(root, &name, Body::Object { url: url.into(), size })),
            Some(reason) => {
                visitor.passed(Passed { root, name: &name, reason });
                ControlFlow::Continue(())
            }
        }
    });
    visited.unwrap_or_else(|error| visitor.found(crate::folder::unlistable(root, "", &error)))
}

/// Where the first hidden part of a name ends.
fn hidden_end(name: &str) -> Option<usize> {
    let mut start = 0;
    for part in name.split('/') {
        if rules::is_hidden(part.as_bytes()) {
            return Some(start + part.len());
        }
        start += part.len() + 1;
    }
    None
}

/// Why an object is passed over, if it is.
fn judge(name: &str, url: &str, sought: Sought) -> Option<Reason> {
    match rules::judge(name, sought) {
        Verdict::Take => None,
        Verdict::Pass(reason) => Some(reason),
        Verdict::Look => match crate::reader::read_from(File::open(Path::new(url)), rules::HEAD) {
            Ok(head) => (!sought.is_head(&head)).then_some(Reason::OtherContent),
            Err(_) => Some(Reason::Unreadable),
        },
    }
}

/// Is shown the name below the folder, the address and the size of an object.
type Seen<'a> = dyn FnMut(&str, &str, u64) -> ControlFlow<()> + 'a;

/// Shows every object of a folder in natural order.
pub(crate) fn each_object(root: &Path, deep: bool, seen: &mut Seen<'_>) -> io::Result<ControlFlow<()>> {
    let text = root.to_string_lossy();
    let listed = stores()?.list(&text, deep).map_err(|error| noted(&text, error))?;
    let mut places: Vec<u32> = (0..u32::try_from(listed.len()).unwrap_or(u32::MAX)).collect();
    let name = |place: &u32| &*listed[*place as usize].name;
    places.sort_unstable_by(|a, b| order::natural(name(a), name(b)));
    let root = text.trim_end_matches('/');
    for place in &places {
        let flow = seen(name(place), &format!("{root}/{}", name(place)), listed[*place as usize].size);
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_parts_end_where_their_folder_does() {
        for (name, expected) in [
            ("a/b.png", None),
            (".x/b.png", Some(2)),
            ("a/.x", Some(4)),
            ("a/__MACOSX/._b.png", Some(10)),
            ("..", None),
        ] {
            assert_eq!(hidden_end(name), expected, "{name}");
        }
    }
}
