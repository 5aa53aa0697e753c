//! What the answer should hold beside the cluster, wherever a client says so.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::error::ApiError;

/// No model has more clusters.
pub const MOST_CLUSTERS: u32 = 10_000;

/// What the answer should hold beside the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Options {
    /// How many clusters to list per image, the most probable first.
    #[serde(default)]
    #[param(minimum = 0, maximum = 10_000)]
    pub top_k: Option<u32>,
    /// True to get each image's embedding.
    #[serde(default)]
    pub embedding: Option<bool>,
}

impl Options {
    /// True for the name of an option.
    pub fn is_one(&self, field: &str) -> bool {
        ["top_k", "embedding"].contains(&field)
    }

    /// Sets an option from a form's field.
    pub fn set(&mut self, field: &str, text: &str) -> Result<(), ApiError> {
        let wrong = |wanted: &str| ApiError::BadQuery(format!("the field '{field}' must be {wanted}, not '{text}'"));
        match field {
            "top_k" => self.top_k = Some(text.parse().map_err(|_| wrong("a whole number"))?),
            _ => self.embedding = Some(text.parse().map_err(|_| wrong("true or false"))?),
        }
        Ok(())
    }

    /// These, and where they say nothing the others, within the limits.
    pub fn or(self, others: Self) -> Result<Self, ApiError> {
        if [self.top_k, others.top_k].into_iter().flatten().any(|k| k > MOST_CLUSTERS) {
            return Err(ApiError::BadQuery(format!("top_k is more than {MOST_CLUSTERS}")));
        }
        Ok(Self { top_k: self.top_k.or(others.top_k), embedding: self.embedding.or(others.embedding) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_bodys_own_options_win_over_the_query() {
        let mut form = Options::default();
        form.set("top_k", "3").unwrap();
        let query = Options { top_k: Some(5), embedding: Some(true) };
        assert_eq!(form.or(query), Ok(Options { top_k: Some(3), embedding: Some(true) }));
        assert_eq!(Options::default().or(query), Ok(query));
        let too_many = Options { top_k: Some(10_001), embedding: None };
        assert!(form.or(too_many).is_err() && too_many.or(form).is_err());
        assert!(form.set("top_k", "many").unwrap_err().to_string().contains("whole number, not 'many'"));
        assert!(form.set("embedding", "1").unwrap_err().to_string().contains("true or false"));
    }
}
