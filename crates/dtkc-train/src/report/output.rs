//! The file of a report.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use dtkc_report::Report;

use crate::error::TrainError;

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page with everything in it.
    Html,
    /// The facts without pictures, for notes.
    Markdown,
    /// The same for programs.
    Json,
}

impl Format {
    /// The form that a file's name asks for; a page where it has no ending.
    pub fn of(path: &Path) -> Result<Self, String> {
        let Some(ending) = path.extension() else { return Ok(Self::Html) };
        let ending = ending.to_string_lossy().to_ascii_lowercase();
        ending.parse().map_err(|_| {
            format!(
                "{} ends in .{ending}; a report ends in .html, .md or .json, unless --format says what it is",
                path.display()
            )
        })
    }

    /// The usual end of a file's name.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Json => "json",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "html" | "htm" => Ok(Self::Html),
            "md" | "markdown" => Ok(Self::Markdown),
            "json" => Ok(Self::Json),
            other => Err(format!("'{other}' is no form of a report; use html, md or json")),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

/// Writes a report, whole or not at all, and tells its size in bytes.
pub fn write(report: &Report, format: Format, path: &Path) -> Result<u64, TrainError> {
    let text = match format {
        Format::Html => dtkc_report::html(report),
        Format::Markdown => dtkc_report::markdown(report),
        Format::Json => dtkc_report::json(report).map_err(std::io::Error::from)?,
    };
    dtkc_files::write(path, text.as_bytes())?;
    Ok(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_says_its_form() {
        let of = |name: &str| Format::of(Path::new(name));
        assert_eq!(
            [of("a.md"), of("a.JSON"), of("a.html"), of("a")],
            [Format::Markdown, Format::Json, Format::Html, Format::Html].map(Ok)
        );
        assert!(of("model.onnx").is_err_and(|error| error.contains("ends in .onnx")));
        assert!("pdf".parse::<Format>().is_err_and(|error| error.contains("html, md or json")));
    }
}
