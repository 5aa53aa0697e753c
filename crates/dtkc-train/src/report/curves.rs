//! What the log says, as curves.

use std::collections::BTreeSet;

use dtkc_report::{Chart, Line, Mark};

use super::restarts::Past;
use crate::log::EpochRecord;
use crate::restart::Ended;

/// Epochs of one line that are drawn at most.
const DRAWN: usize = 160;

type Value = Box<dyn Fn(&EpochRecord) -> Option<f64>>;

/// One chart for each measure and stage, those of clustering first.
pub(super) fn charts(past: &Past) -> Vec<Chart> {
    let mut stages: Vec<Option<String>> = vec![None];
    for record in &past.records {
        if !stages.contains(&record.stage) {
            stages.push(record.stage.clone());
        }
    }
    stages.into_iter().flat_map(|stage| of_stage(past, stage.as_deref())).collect()
}

fn of_stage(past: &Past, stage: Option<&str>) -> Vec<Chart> {
    let records: Vec<&EpochRecord> = past.records.iter().filter(|record| record.stage.as_deref() == stage).collect();
    let terms: BTreeSet<&String> = records.iter().flat_map(|record| record.terms.keys()).collect();
    let mut measures: Vec<(String, bool, Value)> = vec![("loss".into(), false, Box::new(|record| record.loss))];
    // A single term is the loss itself.
    for term in terms.iter().filter(|_| terms.len() > 1) {
        let name = (*term).clone();
        measures.push((name.clone(), false, Box::new(move |record| record.terms.get(&name).copied())));
    }
    if stage.is_none() {
        measures.push(("used clusters".into(), false, Box::new(|record| Some(record.used_clusters as f64))));
        measures.push(("entropy".into(), false, Box::new(|record| Some(record.entropy))));
        measures.push(("largest share".into(), false, Box::new(|record| Some(record.largest_share))));
    }
    measures.push(("learning rate".into(), false, Box::new(|record| Some(record.lr))));
    measures.push(("ACC".into(), true, Box::new(|record| record.acc)));
    measures.push(("NMI".into(), true, Box::new(|record| record.nmi)));
    let made = measures.into_iter().map(|(name, needs_labels, value)| Chart {
        lines: lines(past, &records, &name, &value),
        name,
        stage: stage.map(str::to_owned),
        needs_labels,
    });
    // A learning rate of 0 throughout belongs to a method without one.
    let says_nothing = |chart: &Chart| chart.lines.is_empty() || (chart.name == "learning rate" && is_all_zero(chart));
    made.filter(|chart| !says_nothing(chart)).collect()
}

fn is_all_zero(chart: &Chart) -> bool {
    chart.lines.iter().all(|line| line.points.iter().all(|point| point.1 == 0.0))
}

fn lines(past: &Past, records: &[&EpochRecord], name: &str, value: &Value) -> Vec<Line> {
    let restarts: BTreeSet<usize> = records.iter().map(|record| record.restart).collect();
    let line = |restart: usize| {
        let own: Vec<&&EpochRecord> = records.iter().filter(|record| record.restart == restart).collect();
        let points: Vec<(usize, f64)> =
            own.iter().filter_map(|record| Some((record.epoch, value(record).filter(|v| v.is_finite())?))).collect();
        let marks = if ["loss", "used clusters"].contains(&name) { marks(past, restart, &own) } else { Vec::new() };
        Line { restart, chosen: restart == past.chosen, points: thinned(points), marks }
    };
    restarts.into_iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

fn marks(past: &Past, restart: usize, own: &[&&EpochRecord]) -> Vec<Mark> {
    let anew = own.iter().filter(|record| record.regrouped);
    let mut marks: Vec<Mark> =
        anew.map(|record| Mark { epoch: record.epoch, what: "clusters made anew".into() }).collect();
    let is_pruned = past.restarts.iter().any(|one| one.restart == restart && one.ended == Some(Ended::Pruned));
    if let Some(last) = own.last().filter(|record| is_pruned && record.stage.is_none()) {
        marks.push(Mark { epoch: last.epoch, what: "pruned".into() });
    }
    marks
}

/// At most so many points, evenly, with the last.
fn thinned(points: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    if points.len() <= DRAWN {
        return points;
    }
    let last = points.len() - 1;
    (0..DRAWN).map(|i| points[i * last / (DRAWN - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_keep_their_ends() {
        let points: Vec<(usize, f64)> = (1..=1000).map(|epoch| (epoch, 0.5)).collect();
        let kept = thinned(points.clone());
        assert_eq!((kept.len(), kept[0].0, kept[DRAWN - 1].0), (DRAWN, 1, 1000));
        assert_eq!(thinned(points[..100].to_vec()).len(), 100);
    }
}
