//! A report of drawn shapes, as large as a test wants it.
#![allow(dead_code, clippy::unwrap_used)]

use dtkc_report::{
    About, Agreement, Alike, Chart, ClassScore, Cluster, Confusion, Consensus, Doubt, Ending, Fit, Line, Map, Mark,
    Mixed, Mostly, Near, Picture, Pixels, Report, Restart, Scores, Shot, TilesWriter,
};

/// Side of the pictures.
pub const SIDE: usize = 24;

/// A picture of the shape of a cluster, another one for each item.
pub fn shape(cluster: usize, item: usize) -> Pixels {
    let (middle, size) = (SIDE as i32 / 2 + (item % 5) as i32 - 2, 4 + (item % 4) as i32);
    let value = |at: usize| {
        let (y, x) = ((at / SIDE) as i32 - middle, (at % SIDE) as i32 - middle);
        let is_ink = match cluster % 4 {
            0 => x * x + y * y < size * size,
            1 => x.abs() < 2 && y.abs() < 3 * size,
            2 => y.abs() < 2 && x.abs() < 3 * size,
            _ => (x.abs() - y.abs()).abs() < 2 && x.abs() < 2 * size,
        };
        if is_ink { 230 } else { 15 }
    };
    Pixels { width: SIDE, height: SIDE, channels: 1, bytes: (0..SIDE * SIDE).map(value).collect() }
}

/// What an item is, from its number alone.
pub struct Items {
    pub k: usize,
}

impl Items {
    pub fn cluster(&self, item: usize) -> usize {
        item % self.k
    }

    /// Heaps on a ring, one for each cluster.
    pub fn place(&self, item: usize) -> [f32; 2] {
        let noise = |salt: u32| {
            let mut x = (item as u32).wrapping_mul(2_654_435_761).wrapping_add(salt);
            x ^= x >> 15;
            x = x.wrapping_mul(0x2c1b_3c6d);
            x ^= x >> 12;
            (x as f32 / u32::MAX as f32) - 0.5
        };
        let turn = self.cluster(item) as f32 / self.k as f32 * std::f32::consts::TAU;
        [turn.cos() * 5.0 + noise(1) * 2.0 + noise(2), turn.sin() * 5.0 + noise(3) * 2.0 + noise(4)]
    }
}

fn shot(items: &Items, index: usize, confidence: f64) -> Shot {
    let cluster = items.cluster(index);
    Shot {
        index,
        name: Some(format!("shapes/{index:05}.png")),
        confidence,
        second: Some((cluster + 1) % items.k),
        label: Some(format!("class {cluster}")),
        picture: Some(Picture::sharp(&shape(cluster, index)).unwrap()),
    }
}

/// A whole report of `n` items in `k` clusters; all parts are there.
pub fn report(n: usize, k: usize) -> Report {
    let items = Items { k };
    Report {
        about: About {
            dataset: "drawn <shapes>".into(),
            kind: "images".into(),
            one: "image".into(),
            items: n,
            shape: "24x24x1".into(),
            method: "dtkc".into(),
            preset: "plus".into(),
            clusters: k,
            number: Some("The number was found by --clusters auto; the second best number was 7.".into()),
            used: k,
            confidence: 0.931,
            seed: 1,
            restart: 1,
            why: "Of 3 restarts, restart 1 is shown: it has the lowest loss (0.1234, the next has 0.1401) on batches that all of them share.".into(),
            version: "0.1.0".into(),
        },
        notes: Vec::new(),
        doubts: vec![Doubt { sign: "one cluster holds 35 % of the items".into(), remedy: "look into it, and if it mixes things try more --clusters or --runs".into() }],
        restarts: (0..3).map(restart).collect(),
        charts: ["loss", "separation", "used clusters", "learning rate", "ACC"].map(chart).to_vec(),
        agreement: Some(agreement(n, k)),
        clusters: (0..k).map(|cluster| cluster_of(&items, cluster, n)).collect(),
        alike: vec![alike(&items)],
        mixed: vec![mixed(&items)],
        scores: Some(scores(n, k)),
        map: Some(map(&items, n)),
    }
}

fn restart(restart: usize) -> Restart {
    Restart {
        restart,
        chosen: restart == 1,
        epochs: if restart == 2 { 12 } else { 40 },
        kept: Some(11),
        loss: Some(0.1234 + restart as f64 * 0.01),
        used: Some(8),
        ended: Ending { text: if restart == 2 { "pruned".into() } else { "all epochs".into() }, pruned: restart == 2 },
        acc: Some(0.97),
        nmi: Some(0.93),
    }
}

fn chart(name: &str) -> Chart {
    let line = |restart: usize| {
        let epochs = if restart == 2 { 12 } else { 40 };
        let mut marks = vec![Mark { epoch: 10, what: "clusters made anew".into() }];
        if restart == 2 {
            marks.push(Mark { epoch: 12, what: "pruned".into() });
        }
        let value =
            |epoch: usize| (epoch, 1.0 / (epoch as f64 + restart as f64) + ((epoch * 7 + restart) % 5) as f64 * 0.01);
        Line { restart, chosen: restart == 1, points: (1..=epochs).map(value).collect(), marks }
    };
    Chart { name: name.into(), stage: None, needs_labels: name == "ACC", lines: (0..3).map(line).collect() }
}

fn agreement(n: usize, k: usize) -> Agreement {
    Agreement {
        restarts: vec![0, 1, 2],
        pruned: vec![2],
        nmi: vec![vec![1.0, 0.91, 0.55], vec![0.91, 1.0, 0.6], vec![0.55, 0.6, 1.0]],
        items: n.min(5000),
        of: n,
        mean: Some(0.91),
        consensus: Some(Consensus {
            others: 1,
            mean: 0.9,
            counts: vec![n as u64 / 10, n as u64 - n as u64 / 10],
            by_cluster: vec![Some(0.9); k],
        }),
    }
}

fn cluster_of(items: &Items, cluster: usize, n: usize) -> Cluster {
    let k = items.k;
    let some = |from: usize, confidence: f64| -> Vec<Shot> {
        (from..from + 8).map(|i| i * k + cluster).filter(|&i| i < n).map(|i| shot(items, i, confidence)).collect()
    };
    Cluster {
        cluster,
        size: (n / k) as u64,
        share: 1.0 / k as f64,
        confidence: Some(0.99 - 0.03 * (cluster * 7 % 10) as f64),
        consensus: Some(0.5 + 0.4 * (cluster * 3 % 10) as f64 / 10.0),
        nearest: vec![Near { cluster: (cluster + 1) % k, gap: 5.0 }],
        mostly: Some(Mostly { class: format!("class {cluster}"), share: 0.9996 }),
        certain: some(0, 0.9999),
        typical: some(10, 0.95),
        uncertain: some(20, 0.41),
        importance: Vec::new(),
    }
}

fn hills() -> [Vec<u32>; 2] {
    let hill = |middle: i32| (0..25).map(|x: i32| (40 - 3 * (x - middle).abs()).max(0) as u32).collect();
    [hill(7), hill(17)]
}

fn alike(items: &Items) -> Alike {
    let shots = [0, 1].map(|c: usize| (0..6).map(|i| shot(items, i * items.k + c, 0.5)).collect());
    Alike { clusters: [0, 1], gap: 2.9, torn: 0.12, bars: hills(), shots }
}

fn mixed(items: &Items) -> Mixed {
    let shots = [0, 6].map(|from: usize| (from..from + 6).map(|i| shot(items, i * items.k, 0.9)).collect());
    Mixed { cluster: 0, gap: 6.2, smaller: 0.4, bars: hills(), shots }
}

fn scores(n: usize, k: usize) -> Scores {
    let each = (n / k) as u64;
    let counts = (0..k)
        .map(|row| {
            (0..k).map(|column| if row == column { each - 1 } else { u64::from(column == (row + 1) % k) }).collect()
        })
        .collect();
    let class = |class: usize| ClassScore {
        class: format!("class {class}"),
        items: each,
        cluster: Some(class),
        found: 0.98,
        pure: 0.97,
    };
    Scores {
        acc: 0.97,
        nmi: 0.93,
        ari: 0.94,
        labelled: n,
        classes: (0..k).map(class).collect(),
        confusion: Confusion {
            classes: (0..k).map(|c| format!("class {c}")).collect(),
            clusters: (0..k).collect(),
            counts,
        },
    }
}

fn map(items: &Items, n: usize) -> Map {
    let mut tiles = TilesWriter::new(Fit { side: SIDE, quality: 60 }, &shape(0, 0));
    (0..n).for_each(|item| tiles.push(&shape(items.cluster(item), item)).unwrap());
    Map {
        of: n,
        items: (0..n as u32).collect(),
        axes: (0..n)
            .map(|item| {
                let [x, y] = items.place(item);
                [y * 0.5, x + y]
            })
            .collect(),
        shares: [0.42, 0.23],
        near: (0..n).map(|item| items.place(item)).collect(),
        clusters: (0..n).map(|item| items.cluster(item) as u16).collect(),
        seconds: (0..n).map(|item| ((items.cluster(item) + 1) % items.k) as u16).collect(),
        confidence: (0..n).map(|item| 0.4 + 0.6 * (item % 100) as f32 / 99.0).collect(),
        consensus: (0..n).map(|item| (item % 3 > 0).then_some((item % 2) as f32)).collect(),
        labels: (0..n).map(|item| (item % 7 > 0).then_some(items.cluster(item) as u16)).collect(),
        label_names: (0..items.k).map(|c| format!("class {c}")).collect(),
        names: (0..n).map(|item| format!("shapes/{item:05}.png")).collect(),
        tiles: tiles.finish().unwrap(),
    }
}
