//! Signs that the clusters of a finished run are not what was hoped for, each with what to try.

use dtkc_methods::Method;

use crate::restart::Ended;

/// Mean of the largest membership below which images are not sorted so much as spread.
const LOW_CONFIDENCE: f64 = 0.6;
/// Mean ARI with the best restart below which restarts tell different stories.
const LOW_AGREEMENT: f64 = 0.5;
/// Items of a cluster, on average, below which a network that learns from them alone is often wrong about some.
const FEW_ITEMS: f64 = 40.0;
/// Part of the clusters that may have been found by one restart only.
const MOST_ALONE: f64 = 0.1;
/// Part of the whole fall of the loss that may be left to its last tenth.
const STILL_FALLING: f64 = 0.1;
/// Epochs that it takes to tell.
const FEWEST_EPOCHS: usize = 5;

/// What is known about the restart that was chosen.
#[derive(Debug, Clone)]
pub struct Found<'a> {
    /// The method that found it.
    pub method: Method,
    /// Items in each cluster.
    pub sizes: &'a [u64],
    /// Mean of the largest membership, where it was measured.
    pub confidence: Option<f64>,
    /// Mean ARI of the other restarts that came to their end with this one, where there are any.
    pub agreement: Option<f64>,
    /// Clusters that no other restart has, where there are others.
    pub alone: Option<usize>,
    /// Its loss, epoch by epoch, since clusters were last made anew: before that it is another measure.
    pub losses: &'a [f64],
    /// Why it ended.
    pub ended: Ended,
}

/// A sign, and what to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// What was seen.
    pub sign: String,
    /// What to try next.
    pub remedy: String,
}

impl Doubt {
    fn new(sign: String, remedy: impl Into<String>) -> Self {
        Self { sign, remedy: remedy.into() }
    }
}

/// What there is to doubt, nothing where all looks well.
pub fn doubts(found: &Found<'_>) -> Vec<Doubt> {
    let signs = [empty(found.sizes), large(found.sizes), few(found), unsure(found), disagreeing(found), falling(found)];
    signs.into_iter().flatten().collect()
}

/// The same, one sentence each.
pub fn warnings(found: &Found<'_>) -> Vec<String> {
    doubts(found).into_iter().map(|Doubt { sign, remedy }| format!("{sign}: {remedy}")).collect()
}

/// That restarts were trained on machines of several kinds, if they were.
pub fn of_machines<'a>(kinds: impl Iterator<Item = &'a String>) -> Option<String> {
    let kinds: std::collections::BTreeSet<&str> = kinds.map(String::as_str).collect();
    let named: Vec<&str> = kinds.iter().copied().collect();
    (kinds.len() > 1).then(|| {
        format!(
            "epochs were trained on machines of {} kinds ({}): a run on one of them with the same seed may give other bits",
            kinds.len(),
            named.join("; ")
        )
    })
}

fn empty(sizes: &[u64]) -> Option<Doubt> {
    let k = sizes.len();
    let used = sizes.iter().filter(|&&size| size > 0).count();
    (used < k).then(|| {
        let remedy = format!("ask for fewer (--clusters {}), or try more --runs or a larger --batch", used.max(2));
        Doubt::new(format!("{} of {k} clusters are empty", k - used), remedy)
    })
}

fn large(sizes: &[u64]) -> Option<Doubt> {
    // One of two clusters always has half.
    let limit = match sizes.len() {
        0..=2 => 0.9,
        3 | 4 => 0.5,
        _ => 1.0 / 3.0,
    };
    let total: u64 = sizes.iter().sum();
    let share = *sizes.iter().max()? as f64 / total.max(1) as f64;
    (share >= limit).then(|| {
        let sign = format!("one cluster holds {:.0} % of the items", 100.0 * share);
        Doubt::new(sign, "look into it, and if it mixes things try more --clusters or --runs")
    })
}

fn few(found: &Found<'_>) -> Option<Doubt> {
    let each = found.sizes.iter().sum::<u64>() as f64 / found.sizes.len().max(1) as f64;
    let learns = matches!(found.method, Method::Dtkc | Method::Ddc);
    (learns && each < FEW_ITEMS).then(|| {
        let sign = format!("{each:.0} items for each cluster are few to learn from");
        Doubt::new(
            sign,
            "add more if there are any, look through the clusters in the report, and for photos try --backbone",
        )
    })
}

fn unsure(found: &Found<'_>) -> Option<Doubt> {
    // Among many values all centres are about equally far: memberships of k-means are low however clear its clusters are.
    if found.method == Method::Kmeans {
        return None;
    }
    let confidence = found.confidence.filter(|&confidence| confidence < LOW_CONFIDENCE)?;
    let sign = format!("items are not clearly in one cluster (mean confidence {confidence:.2})");
    Some(Doubt::new(sign, "try more --epochs, fewer --clusters, or --clusters auto"))
}

fn disagreeing(found: &Found<'_>) -> Option<Doubt> {
    if let Some(agreement) = found.agreement.filter(|&agreement| agreement < LOW_AGREEMENT) {
        let sign = format!("restarts found different clusters (mean ARI {agreement:.2} with the best)");
        return Some(Doubt::new(sign, "try more --runs or --epochs, or another number (--clusters auto)"));
    }
    let k = found.sizes.len();
    let alone = found.alone.filter(|&alone| alone as f64 > MOST_ALONE * k as f64)?;
    let sign = format!("{alone} of {k} clusters were found by no other restart");
    Some(Doubt::new(sign, "look into those of low consensus in the report, and try more --runs"))
}

/// Means over a tenth of the epochs: single ones go up and down.
fn falling(found: &Found<'_>) -> Option<Doubt> {
    let losses = found.losses;
    if found.ended != Ended::Epochs || losses.len() < FEWEST_EPOCHS {
        return None;
    }
    let tenth = losses.len().div_ceil(10);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (before, last) = losses.split_at(losses.len() - tenth);
    let (first, before, last) = (mean(&losses[..tenth]), mean(&before[before.len() - tenth..]), mean(last));
    let is_falling = before - last > STILL_FALLING * (first - last) && first > last;
    is_falling.then(|| Doubt::new("the loss was still falling when training ended".to_owned(), "try more --epochs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Found<'_> = Found {
        method: Method::Ddc,
        sizes: &[300, 250, 200, 150, 100],
        confidence: Some(0.95),
        agreement: Some(0.8),
        alone: Some(0),
        losses: &[],
        ended: Ended::Epochs,
    };

    fn only(found: Found<'_>) -> String {
        let mut all = warnings(&found);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    #[test]
    fn good_clusters_are_not_talked_about() {
        assert_eq!(warnings(&GOOD), Vec::<String>::new());
        let little = Found { confidence: None, agreement: None, sizes: &[500, 500], ..GOOD };
        assert_eq!(warnings(&little), Vec::<String>::new(), "one of two has half");
    }

    #[test]
    fn each_sign_has_a_remedy() {
        assert!(only(Found { sizes: &[200, 200, 200, 200, 0, 200], ..GOOD }).contains("1 of 6 clusters are empty"));
        assert!(only(Found { sizes: &[400, 200, 200, 100, 100], ..GOOD }).contains("one cluster holds 40 %"));
        assert!(only(Found { sizes: &[500, 300, 200], ..GOOD }).contains("50 %"));
        assert_eq!(warnings(&Found { sizes: &[450, 300, 250], ..GOOD }), Vec::<String>::new());
        assert!(only(Found { sizes: &[950, 50], ..GOOD }).contains("95 %"));
        assert!(only(Found { confidence: Some(0.41), ..GOOD }).contains("mean confidence 0.41"));
        let centres = Found { confidence: Some(0.41), method: Method::Kmeans, ..GOOD };
        assert_eq!(warnings(&centres), Vec::<String>::new(), "says nothing about k-means");
        assert!(only(Found { agreement: Some(0.3), ..GOOD }).contains("mean ARI 0.30"));
        assert!(only(Found { alone: Some(2), ..GOOD }).contains("2 of 5 clusters were found by no other restart"));
        assert!(only(Found { agreement: Some(0.3), alone: Some(5), ..GOOD }).contains("mean ARI 0.30"), "said once");
        assert!(only(Found { sizes: &[30, 50, 20, 10], ..GOOD }).contains("28 items for each cluster are few"));
        let plain = Found { sizes: &[30, 50, 20, 10], method: Method::Kmeans, ..GOOD };
        assert_eq!(warnings(&plain), Vec::<String>::new(), "k-means learns no network");
        let large = [100; 100];
        assert_eq!(
            warnings(&Found { alone: Some(10), sizes: &large, ..GOOD }),
            Vec::<String>::new(),
            "some always are"
        );
    }

    #[test]
    fn a_loss_that_still_falls_wants_more_epochs() {
        let line: Vec<f64> = (0..8).map(|epoch| 1.0 - 0.1 * f64::from(epoch)).collect();
        assert!(only(Found { losses: &line, ..GOOD }).contains("more --epochs"));
        let flat: Vec<f64> = (0..30).map(|epoch| 0.5f64.powi(epoch)).collect();
        assert_eq!(warnings(&Found { losses: &flat, ..GOOD }), Vec::<String>::new());
        let rising = [0.1, 0.2, 0.3, 0.4, 0.35, 0.3];
        assert_eq!(warnings(&Found { losses: &rising, ..GOOD }), Vec::<String>::new());
        let stopped = Found { losses: &line, ended: Ended::Patience, ..GOOD };
        assert_eq!(warnings(&stopped), Vec::<String>::new());
    }

    #[test]
    fn machines_of_several_kinds_are_told() {
        let kinds =
            |names: &[&str]| of_machines(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().iter());
        assert_eq!((kinds(&[]), kinds(&["a", "a"])), (None, None));
        let text = kinds(&["b with AVX2", "a", "b with AVX2"]).unwrap_or_default();
        assert!(text.contains("2 kinds (a; b with AVX2)") && text.contains("other bits"), "{text}");
    }
}
