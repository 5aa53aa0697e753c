//! What the paper reports: Trosten, Kampffmeyer, Jenssen, Deep Image Clustering with Tensor Kernels and Unsupervised
//! Companion Objectives; the figures of other methods as it quotes them.

use dtkc_human as human;
use dtkc_methods::Method;
use serde::Serialize;

use super::SetRecord;

/// Figures of one method on one dataset. Only `best` where the paper quotes a single figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    /// Accuracy.
    pub acc: PublishedSpread,
    /// Normalised mutual information.
    pub nmi: PublishedSpread,
}

/// Best, mean and standard deviation as printed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PublishedSpread {
    /// Of the run with the lowest loss.
    pub best: f64,
    /// Over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Over all runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd: Option<f64>,
}

/// A dataset of the paper.
#[derive(Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Part of the name that files have, letters and digits only.
    word: &'static str,
    items: usize,
    classes: usize,
    rows: &'static [Row],
}

/// Method, ACC, NMI; one number or three.
type Row = (&'static str, &'static [f64], &'static [f64]);

/// The longer word first: what is called fashion-mnist is not MNIST.
const KNOWN: [Known; 7] = [
    Known {
        name: "Fashion-MNIST",
        word: "fashion",
        items: 60_000,
        classes: 10,
        rows: &[("ddc", &[0.58, 0.55, 0.06], &[0.52, 0.49, 0.04]), ("dtkc", &[0.63, 0.56, 0.04], &[0.55, 0.50, 0.03])],
    },
    Known {
        name: "MNIST",
        word: "mnist",
        items: 60_000,
        classes: 10,
        rows: &[
            ("kmeans", &[0.51, 0.54, 0.03], &[0.49, 0.50, 0.01]),
            ("spectral", &[0.50, 0.55, 0.02], &[0.51, 0.51, 0.01]),
            ("dbc", &[0.96], &[0.92]),
            ("dcn", &[0.83], &[0.81]),
            ("idec", &[0.88], &[0.87]),
            ("spectralnet", &[0.97], &[0.92]),
            ("dec", &[0.83, 0.87, 0.03], &[0.85, 0.86, 0.01]),
            ("ddc", &[0.91, 0.77, 0.07], &[0.83, 0.73, 0.06]),
            ("dtkc", &[0.94, 0.77, 0.08], &[0.88, 0.74, 0.07]),
        ],
    },
    Known {
        name: "USPS",
        word: "usps",
        items: 9298,
        classes: 10,
        rows: &[
            ("kmeans", &[0.67, 0.63, 0.04], &[0.63, 0.62, 0.02]),
            ("spectral", &[0.59, 0.65, 0.02], &[0.60, 0.60, 0.00]),
            ("dbc", &[0.74], &[0.72]),
            ("idec", &[0.76], &[0.78]),
            ("dec", &[0.76, 0.76, 0.00], &[0.78, 0.78, 0.00]),
            ("ddc", &[0.81, 0.69, 0.06], &[0.77, 0.70, 0.03]),
            ("dtkc", &[0.78, 0.70, 0.06], &[0.80, 0.73, 0.05]),
        ],
    },
    Known {
        name: "COIL-100",
        word: "coil",
        items: 7200,
        classes: 100,
        rows: &[
            ("kmeans", &[0.62, 0.61, 0.01], &[0.83, 0.83, 0.00]),
            ("spectral", &[0.44, 0.56, 0.05], &[0.76, 0.81, 0.02]),
            ("dbc", &[0.78], &[0.91]),
            ("dec", &[0.59, 0.61, 0.02], &[0.84, 0.85, 0.01]),
            ("ddc", &[0.61, 0.59, 0.02], &[0.83, 0.83, 0.01]),
            ("dtkc", &[0.64, 0.60, 0.02], &[0.85, 0.83, 0.01]),
        ],
    },
    Known {
        name: "SVHN",
        word: "svhn",
        items: 99_289,
        classes: 10,
        rows: &[("ddc", &[0.15, 0.14, 0.01], &[0.02, 0.02, 0.01]), ("dtkc", &[0.17, 0.18, 0.01], &[0.05, 0.06, 0.01])],
    },
    Known {
        name: "Character Trajectories",
        word: "trajectories",
        items: 1491,
        classes: 10,
        rows: &[("ddc", &[0.64, 0.58, 0.09], &[0.73, 0.68, 0.09]), ("dtkc", &[0.80, 0.65, 0.08], &[0.83, 0.74, 0.06])],
    },
    Known {
        name: "Arabic Digits",
        word: "arabic",
        items: 8800,
        classes: 10,
        rows: &[("ddc", &[0.46, 0.55, 0.07], &[0.63, 0.62, 0.04]), ("dtkc", &[0.76, 0.56, 0.09], &[0.74, 0.61, 0.07])],
    },
];

impl Known {
    /// What the paper reports for a method.
    pub fn published(&self, method: Method) -> Option<Published> {
        let (_, acc, nmi) = self.rows.iter().find(|(name, ..)| *name == method.name())?;
        let spread = |numbers: &[f64]| PublishedSpread {
            best: numbers[0],
            mean: numbers.get(1).copied(),
            sd: numbers.get(2).copied(),
        };
        Some(Published { acc: spread(acc), nmi: spread(nmi) })
    }
}

/// A dataset of the paper, by which a set goes.
#[derive(Debug)]
pub struct Recognised {
    /// Which one.
    pub known: &'static Known,
    /// What must be said beside its figures, where the set is only a part of it.
    pub remark: Option<String>,
}

/// The dataset of the paper that a set is, or is a part of with all classes, known by its name and its numbers; else why it is none.
pub fn recognise(set: &SetRecord) -> Result<Recognised, String> {
    let plain = |name: &str| name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let names = [plain(&set.name), plain(&set.title)];
    let called = KNOWN.iter().find(|known| names.iter().any(|name| name.contains(known.word)));
    let Some(known) = called else {
        let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        return Err(format!("the paper has no figures for {}, only for {}", set.name, names.join(", ")));
    };
    if (set.items, set.classes) == (known.items, Some(known.classes)) {
        return Ok(Recognised { known, remark: None });
    }
    if set.items < known.items && set.classes == Some(known.classes) {
        let [all, here] = [known.items, set.items].map(|items| human::count(items as u64));
        let remark = format!("the paper's figures are of all {all} items of {}; {} has {here}", known.name, set.name);
        return Ok(Recognised { known, remark: Some(remark) });
    }
    Err(format!(
        "the paper's {} has {} items and {} classes, {} has {} and {}: its figures are left out",
        known.name,
        human::count(known.items as u64),
        known.classes,
        set.name,
        human::count(set.items as u64),
        set.classes.map_or("no labels".into(), |classes| classes.to_string())
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn set(name: &str, title: &str, items: usize, classes: Option<usize>) -> SetRecord {
        SetRecord { title: title.into(), items, classes, ..SetRecord::named(name) }
    }

    #[test]
    fn sets_are_known_by_name_and_numbers() {
        for (name, title, items, classes, expected) in [
            ("mnist", "train-images-idx3-ubyte", 60_000, 10, "MNIST"),
            ("digits", "MNIST", 60_000, 10, "MNIST"),
            ("fashion", "x", 60_000, 10, "Fashion-MNIST"),
            ("fashion-mnist", "x", 60_000, 10, "Fashion-MNIST"),
            ("usps32", "x", 9298, 10, "USPS"),
            ("coil_100", "x", 7200, 100, "COIL-100"),
            ("svhn", "x", 99_289, 10, "SVHN"),
            ("trajectories", "x", 1491, 10, "Character Trajectories"),
            ("arabic", "x", 8800, 10, "Arabic Digits"),
        ] {
            let found = recognise(&set(name, title, items, Some(classes))).unwrap();
            assert_eq!((found.known.name, found.remark), (expected, None), "{name}");
        }
        let part = recognise(&set("mnist", "x", 10_000, Some(10))).unwrap();
        let remark = part.remark.unwrap();
        assert!(
            part.known.name == "MNIST" && remark.contains("all 60,000 items") && remark.contains("mnist has 10,000"),
            "{remark}"
        );
        let fewer = recognise(&set("mnist", "x", 10_000, Some(5))).unwrap_err();
        assert!(fewer.contains("60,000 items and 10 classes") && fewer.contains("10,000 and 5"), "{fewer}");
        assert!(recognise(&set("mnist", "x", 70_000, Some(10))).is_err(), "more is another set");
        assert!(recognise(&set("usps", "x", 9298, None)).unwrap_err().contains("no labels"));
        let other = recognise(&set("photos", "x", 9298, Some(10))).unwrap_err();
        assert!(other.contains("no figures for photos") && other.contains("SVHN"), "{other}");
    }

    #[test]
    fn figures_are_those_of_the_table() {
        let usps = recognise(&set("usps", "", 9298, Some(10))).unwrap().known;
        let dtkc = usps.published(Method::Dtkc).unwrap();
        assert_eq!((dtkc.acc.best, dtkc.acc.mean, dtkc.acc.sd), (0.78, Some(0.70), Some(0.06)));
        assert_eq!((dtkc.nmi.best, dtkc.nmi.mean, dtkc.nmi.sd), (0.80, Some(0.73), Some(0.05)));
        for known in &KNOWN {
            for (name, acc, nmi) in known.rows {
                assert!([1, 3].contains(&acc.len()) && acc.len() == nmi.len(), "{} {name}", known.name);
            }
        }
    }
}
