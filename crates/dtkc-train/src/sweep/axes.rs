//! Settings that vary, and the points that their values make.

use std::str::FromStr;

use dtkc_methods::Method;
use serde::Serialize;

use crate::compare::Variant;
use crate::error::TrainError;

/// More points than that are a slip of the pen: each is a run.
const MOST_POINTS: usize = 1000;

/// A setting with the values that it takes in turn: `loss.lambda=1,0.1,0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// The setting.
    pub key: String,
    /// Its values, in the order that they are shown in.
    pub values: Vec<String>,
}

impl Axis {
    /// Whether it is a setting of the companion objectives.
    pub fn is_of_companions(&self) -> bool {
        is_lambda(&self.key) || self.key.starts_with("loss.companions.")
    }
}

fn is_lambda(key: &str) -> bool {
    matches!(key, "lambda" | "loss.lambda")
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "write for example --vary loss.lambda=1,0.1,0.01";
        let Some((key, values)) = text.split_once('=') else {
            return Err(format!("'{text}' names no values; {example}"));
        };
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(format!("'{text}' has an empty name or value; {example}"));
        }
        Ok(Self { key: key.trim().to_owned(), values })
    }
}

/// How the values of several settings are put together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// Each value with each of the others.
    #[default]
    Grid,
    /// The first values together, the second ones together, ..
    List,
}

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The value of each setting, in the order of the axes.
    pub values: Vec<String>,
    /// The method with these changes.
    pub variant: Variant,
}

/// All points. DTKC without companion objectives (`loss.lambda` 0) is DDC, and so it is run.
pub fn points(method: Method, axes: &[Axis], join: Join) -> Result<Vec<Point>, TrainError> {
    let is_twin = |(i, axis): &(usize, &Axis)| axes[..*i].iter().any(|before| before.key == axis.key);
    if let Some((_, twin)) = axes.iter().enumerate().find(is_twin) {
        let text = format!("--vary names {} twice; give all its values at once", twin.key);
        return Err(TrainError::Setting(text));
    }
    let rows = match join {
        Join::Grid => grid(axes)?,
        Join::List => list(axes)?,
    };
    let mut points: Vec<Point> = Vec::with_capacity(rows.len());
    for values in rows {
        let variant = variant(method, axes, &values)?;
        if points.iter().any(|point| point.variant == variant) {
            return Err(TrainError::Setting(format!("two points of the sweep are {variant}; leave one of them out")));
        }
        points.push(Point { values, variant });
    }
    Ok(points)
}

fn grid(axes: &[Axis]) -> Result<Vec<Vec<String>>, TrainError> {
    let count = axes.iter().fold(1usize, |count, axis| count.saturating_mul(axis.values.len()));
    if count > MOST_POINTS {
        let text =
            format!("the sweep has {count} points, more than {MOST_POINTS}; name fewer values, or use --join list");
        return Err(TrainError::Setting(text));
    }
    // The last setting changes fastest.
    let longer = |rows: Vec<Vec<String>>, axis: &Axis| {
        let with = |row: &Vec<String>, value: &String| row.iter().chain([value]).cloned().collect::<Vec<String>>();
        rows.iter().flat_map(|row| axis.values.iter().map(|value| with(row, value))).collect()
    };
    Ok(axes.iter().fold(vec![Vec::new()], longer))
}

fn list(axes: &[Axis]) -> Result<Vec<Vec<String>>, TrainError> {
    let count = axes.first().map_or(0, |axis| axis.values.len());
    if let Some(other) = axes.iter().find(|axis| axis.values.len() != count) {
        let (first, other, there) = (&axes[0].key, &other.key, other.values.len());
        let text = format!("{first} has {count} values and {other} has {there}; --join list needs as many of each");
        return Err(TrainError::Setting(text));
    }
    Ok((0..count).map(|i| axes.iter().map(|axis| axis.values[i].clone()).collect()).collect())
}

fn variant(method: Method, axes: &[Axis], values: &[String]) -> Result<Variant, TrainError> {
    let is_zero = |value: &str| value.parse::<f64>().is_ok_and(|value| value == 0.0);
    let pairs = || axes.iter().map(|axis| axis.key.as_str()).zip(values);
    let without = method == Method::Dtkc && pairs().any(|(key, value)| is_lambda(key) && is_zero(value));
    let method = if without { Method::Ddc } else { method };
    let kept = pairs().filter(|(key, _)| !(without && is_lambda(key)));
    let changes = kept.map(|(key, value)| format!("+{key}={value}"));
    format!("{}{}", method.name(), changes.collect::<String>()).parse()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn names(method: Method, texts: &[&str], join: Join) -> Vec<String> {
        points(method, &axes(texts), join).unwrap().iter().map(|point| point.variant.to_string()).collect()
    }

    #[test]
    fn a_grid_has_each_value_with_each_and_a_list_one_of_each() {
        let texts = ["loss.sigma=0.15,0.45", "plan.batch=24,48"];
        let expected = ["0.15+plan.batch=24", "0.15+plan.batch=48", "0.45+plan.batch=24", "0.45+plan.batch=48"];
        assert_eq!(names(Method::Ddc, &texts, Join::Grid), expected.map(|end| format!("ddc+loss.sigma={end}")));
        let expected = ["ddc+loss.sigma=0.15+plan.batch=24", "ddc+loss.sigma=0.45+plan.batch=48"];
        assert_eq!(names(Method::Ddc, &texts, Join::List), expected);
        let made = points(Method::Ddc, &axes(&texts), Join::Grid).unwrap();
        assert_eq!(made[2].values, ["0.45", "24"]);
    }

    #[test]
    fn dtkc_without_companions_is_ddc() {
        let texts = ["loss.lambda=0.1,0,1e-6", "loss.sigma=0.15"];
        let expected =
            ["dtkc+loss.lambda=0.1+loss.sigma=0.15", "ddc+loss.sigma=0.15", "dtkc+loss.lambda=1e-6+loss.sigma=0.15"];
        assert_eq!(names(Method::Dtkc, &texts, Join::Grid), expected);
        assert_eq!(names(Method::Dtkc, &["lambda=0.0"], Join::Grid), ["ddc"]);
        assert_eq!(
            names(Method::Dec, &["lambda=0"], Join::Grid),
            ["dec+lambda=0"],
            "of DEC it is a setting like others"
        );
    }

    #[test]
    fn mistakes_get_one_sentence() {
        for (text, words) in [("loss.lambda", "names no values"), ("=1", "empty"), ("a=1,,2", "empty"), ("a=", "empty")]
        {
            let error = text.parse::<Axis>().unwrap_err();
            assert!(error.contains(words) && error.contains("--vary loss.lambda=1,0.1"), "{error}");
        }
        for (texts, join, words) in [
            (vec!["a=1", "a=2"], Join::Grid, "names a twice"),
            (vec!["a=1,2", "b=1"], Join::List, "a has 2 values and b has 1"),
            (vec!["a=1,1"], Join::Grid, "two points of the sweep are dtkc+a=1"),
            (vec!["lambda=0,0.0"], Join::Grid, "two points of the sweep are ddc"),
            (vec!["a=1 2"], Join::Grid, "no letter of a folder's name"),
            (vec!["run.seed=1,2"], Join::Grid, "which all cells"),
        ] {
            let error = points(Method::Dtkc, &axes(&texts), join).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{error}");
        }
        let many: String = (0..40).map(|i| format!(",{i}")).collect();
        let (a, b) = (format!("a=x{many}"), format!("b=x{many}"));
        assert!(points(Method::Ddc, &axes(&[&a, &b]), Join::Grid).unwrap_err().to_string().contains("1681 points"));
    }
}
