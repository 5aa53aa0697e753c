//! What a model says about items.

use ndarray::{Array2, ArrayView1};

/// A model's answer for a batch, one row per item.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignments {
    /// The most probable cluster; the lowest id on a tie.
    pub clusters: Vec<i64>,
    /// `[items, clusters]`, each row sums to 1.
    pub probabilities: Array2<f32>,
    /// `[items, hidden]`.
    pub embedding: Array2<f32>,
    /// How far each is from everything in the training set, from 0 to 1; empty where the model does not tell.
    pub outliers: Vec<f32>,
}

/// A model's answer for one item, in short.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assignment {
    /// The most probable cluster.
    pub cluster: usize,
    /// Its probability.
    pub confidence: f32,
    /// The second most probable cluster.
    pub second: usize,
    /// Its probability.
    pub second_confidence: f32,
    /// How much more probable the first is than the second.
    pub margin: f32,
    /// How far it is from everything in the training set, where the model tells.
    pub outlier: Option<f32>,
}

impl Assignments {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.clusters.len()
    }

    /// True without any item.
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty()
    }

    /// The answer for one item; `None` past the end.
    pub fn get(&self, image: usize) -> Option<Assignment> {
        let cluster = usize::try_from(*self.clusters.get(image)?).ok()?;
        let outlier = self.outliers.get(image).copied();
        Some(Assignment { outlier, ..Assignment::from_row(cluster, self.probabilities.row(image)) })
    }

    /// The answers in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Assignment> + '_ {
        let rows = self.clusters.iter().zip(self.probabilities.rows()).enumerate();
        rows.map(|(place, (&cluster, row))| Assignment {
            outlier: self.outliers.get(place).copied(),
            ..Assignment::from_row(usize::try_from(cluster).unwrap_or(0), row)
        })
    }
}

impl Assignment {
    /// From the cluster and the probabilities of one item. On ties the lower id comes first.
    pub fn from_row(cluster: usize, probabilities: ArrayView1<'_, f32>) -> Self {
        let confidence = probabilities.get(cluster).copied().unwrap_or(0.0);
        let mut second = (cluster, 0.0);
        let mut found = false;
        for (id, &probability) in probabilities.iter().enumerate() {
            if id != cluster && (!found || probability > second.1) {
                second = (id, probability);
                found = true;
            }
        }
        let (second, second_confidence) = second;
        Self { cluster, confidence, second, second_confidence, margin: confidence - second_confidence, outlier: None }
    }
}
