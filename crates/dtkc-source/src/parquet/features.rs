//! What Hugging Face's `datasets` writes about the columns of a file: which of them is a class, and how classes are called.

use serde_json::Value;

use super::file::Reader;
use super::shown;
use parquet::file::reader::FileReader;

/// The most bytes of such a text: a hundred thousand classes have names in it.
const MAX_TEXT: usize = 8 << 20;

/// Columns that are classes, with the names of these.
#[derive(Debug, Default)]
pub struct Features {
    classes: Vec<(String, Vec<String>)>,
}

impl Features {
    /// What a file says; nothing where it was not written by that library, or the text is not what it writes.
    pub fn of(reader: &Reader) -> Self {
        let known = reader.metadata().file_metadata().key_value_metadata();
        let text = known.and_then(|pairs| pairs.iter().find(|pair| pair.key == "huggingface")?.value.as_deref());
        text.and_then(Self::read).unwrap_or_default()
    }

    fn read(text: &str) -> Option<Self> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let all: Value = serde_json::from_str(text).ok()?;
        let features = all.get("info")?.get("features")?.as_object()?;
        let names = |feature: &Value| -> Option<Vec<String>> {
            let is_class = feature.get("_type")?.as_str()? == "ClassLabel";
            let names = feature.get("names").filter(|_| is_class)?.as_array()?;
            names.iter().map(|name| name.as_str().map(shown)).collect()
        };
        let classes = features.iter().filter_map(|(column, feature)| Some((column.clone(), names(feature)?)));
        Some(Self { classes: classes.filter(|(_, names)| !names.is_empty()).collect() })
    }

    /// The names of the classes in that column.
    pub fn names(&self, column: &str) -> Option<&[String]> {
        self.classes.iter().find(|(name, _)| name == column).map(|(_, names)| names.as_slice())
    }

    /// The column of classes, where there is just one.
    pub fn only_class(&self) -> Option<&str> {
        if let [(column, _)] = &self.classes[..] { Some(column) } else { None }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_names_that_were_written() {
        let text = r#"{"info": {"features": {"image": {"_type": "Image"}, "digit": {"names": ["null", "eins"], "_type":
            "ClassLabel"}, "size": {"dtype": "int32", "_type": "Value"}}}}"#;
        let features = Features::read(text).unwrap();
        assert_eq!(features.only_class(), Some("digit"));
        assert_eq!(features.names("digit").unwrap(), ["null", "eins"]);
        assert!(features.names("size").is_none() && features.names("image").is_none());
    }

    #[test]
    fn whatever_else_is_written_says_nothing() {
        let odd = r#"{"info": {"features": {"a": {"_type": "ClassLabel", "names": [1]}, "b": 3}}}"#;
        for text in ["", "[]", "{\"info\": 3}", odd, &"[".repeat(10_000)] {
            let features = Features::read(text).unwrap_or_default();
            assert!(features.only_class().is_none() && features.names("a").is_none(), "{text:.40}");
        }
    }
}
