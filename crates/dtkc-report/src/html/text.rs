//! Text that is safe inside a page.

use serde::Serialize;

use crate::model::Shot;
use crate::words::percent;

/// Text for an element or an attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// Data for a script. No text in it can end the element.
pub fn embedded(id: &str, value: &impl Serialize) -> String {
    // What cannot be written as JSON is not there; every type that is given here can.
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".into()).replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"{id}\">{text}</script>\n")
}

/// A sentence that begins with a capital letter.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The colour of a cluster among `count`, which reads on light and dark paper.
pub fn color(cluster: usize, count: usize) -> String {
    const FEW: [&str; 10] =
        ["#3b7ddd", "#e8792b", "#2f9e62", "#d64550", "#8a63d2", "#9c6b4f", "#d864a9", "#7d8590", "#a8a12a", "#1ea5b8"];
    if count <= FEW.len() {
        return FEW[cluster % FEW.len()].to_owned();
    }
    // Steps of the golden angle never come back to the same hue; three lightnesses keep neighbours apart.
    let hue = (cluster as f64 * 137.508) % 360.0;
    let light = [50, 62, 40][cluster % 3];
    format!("hsl({hue:.0} 62% {light}%)")
}

/// The number of a cluster, in its colour.
pub fn chip(cluster: usize, count: usize) -> String {
    format!("<a class=\"chip\" href=\"#cluster-{cluster}\" style=\"--c:{}\">{cluster}</a>", color(cluster, count))
}

/// A row of pictures with a title.
pub fn strip(title: &str, hint: &str, shots: &[Shot]) -> String {
    if shots.is_empty() {
        return String::new();
    }
    let pictures: String = shots.iter().map(figure).collect();
    let hint = if hint.is_empty() { String::new() } else { format!(" <small>{hint}</small>") };
    format!("<h4>{title}{hint}</h4><ul class=\"strip\">{pictures}</ul>")
}

fn figure(shot: &Shot) -> String {
    let name = shot.name.clone().unwrap_or_else(|| format!("number {}", shot.index));
    let label = shot.label.as_ref().map_or(String::new(), |label| format!("&#10;label: {}", escape(label)));
    let second = shot.second.map_or(String::new(), |second| format!("&#10;second: cluster {second}"));
    let name = escape(&name);
    let picture = match &shot.picture {
        Some(picture) => {
            let class = if picture.is_tiny() { " class=\"tiny\"" } else { "" };
            let (width, height) = (picture.width, picture.height);
            format!(
                "<img{class} loading=\"lazy\" width=\"{width}\" height=\"{height}\" alt=\"{name}\" src=\"{}\">",
                picture.address()
            )
        }
        None => "<span class=\"gone\">no picture</span>".to_owned(),
    };
    format!(
        "<li><figure title=\"{name}{second}{label}\">{picture}<figcaption>{}</figcaption></figure></li>",
        percent(shot.confidence)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_element() {
        assert_eq!(escape("<b a='\"'>&"), "&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        let data = embedded("x", &["</script><script>alert(1)</script>"]);
        assert_eq!(data.matches("</script").count(), 1, "{data}");
        assert_eq!(sentence("one thing"), "One thing");
    }

    #[test]
    fn clusters_have_colours_of_their_own() {
        let all: std::collections::BTreeSet<String> = (0..100).map(|cluster| color(cluster, 100)).collect();
        assert_eq!(all.len(), 100);
        assert_ne!(color(0, 2), color(1, 2));
    }
}
