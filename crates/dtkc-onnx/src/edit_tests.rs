#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{Sample, SequenceSample};
use crate::{Outlier, read_metadata, read_network, with_outlier, without_outlier, write};

fn files() -> Vec<Vec<u8>> {
    let (sample, sequences) = (Sample::small(), SequenceSample::small());
    let images = write(&sample.network(), &sample.metadata()).unwrap();
    let students = write(&sample.student_t(), &sample.metadata()).unwrap();
    let with = with_outlier(&images, &Outlier::sample(7, false, 1)).unwrap();
    vec![images, students, write(&sequences.network(), &sequences.metadata(1)).unwrap(), with]
}

fn split_of(bytes: &[u8], cluster: usize) -> Edit {
    let width = read_metadata(bytes).unwrap().embedding_size;
    Edit::Split(Split { cluster, direction: (0..width).map(|i| (i as f32).cos()).collect(), offset: 0.25, size: 7 })
}

#[test]
fn every_edit_can_be_taken_back_to_the_same_bytes() {
    for file in files() {
        let mut steps = vec![file];
        for step in 0..5 {
            let last = steps.last().unwrap();
            let change = match step {
                0 => split_of(last, 1),
                1 => Edit::Merge(vec![2, 0]),
                2 => Edit::Name(1, Some("both".into())),
                3 => split_of(last, 0),
                _ => Edit::Merge(vec![1, 3]),
            };
            steps.push(edit(last, &change).unwrap());
        }
        assert_eq!(read_metadata(steps.last().unwrap()).unwrap().edits.len(), 5);
        while let (Some(last), Some(expected)) = (steps.pop(), steps.last()) {
            assert_eq!(&undo(&last).unwrap(), expected);
        }
    }
}

#[test]
fn edits_and_outliers_do_not_know_each_other() {
    let file = &files()[0];
    let outlier = Outlier::sample(7, false, 1);
    let merge = Edit::Merge(vec![0, 1]);
    let edited_first = with_outlier(&edit(file, &merge).unwrap(), &outlier).unwrap();
    let edited_last = edit(&with_outlier(file, &outlier).unwrap(), &merge).unwrap();
    assert_eq!(undo(&edited_first).unwrap(), undo(&edited_last).unwrap());
    assert_eq!(without_outlier(&edited_first).unwrap(), edit(file, &merge).unwrap());
}

fn clusters(bytes: &[u8]) -> Vec<(Option<String>, u64)> {
    read_metadata(bytes).unwrap().clusters.into_iter().map(|cluster| (cluster.name, cluster.size)).collect()
}

#[test]
fn names_and_sizes_follow_and_ids_stay_where_they_can() {
    // Sizes 100, 99, 98, 97; cluster 1 is called ones.
    let file = &files()[0];
    let named = edit(file, &Edit::Name(3, Some("threes".into()))).unwrap();
    let merged = edit(&named, &Edit::Merge(vec![3, 1])).unwrap();
    let name = |text: &str| Some(text.to_owned());
    assert_eq!(clusters(&merged), [(None, 100), (name("ones + threes"), 196), (None, 98)]);
    let split = edit(&merged, &split_of(&merged, 1)).unwrap();
    let parts = [(None, 100), (name("ones + threes (1)"), 189), (None, 98), (name("ones + threes (2)"), 7)];
    assert_eq!(clusters(&split), parts);
    let past: Vec<String> = read_metadata(&split).unwrap().edits.into_iter().map(|past| past.what).collect();
    assert_eq!(past, ["name 3=threes", "merge 1,3", "split 1"]);
    assert_eq!(clusters(&edit(&split, &Edit::Name(3, None)).unwrap())[3], (None, 7));
}

#[test]
fn what_cannot_be_edited_is_refused_in_one_sentence() {
    let file = &files()[0];
    let refusal = |change: Edit| {
        let text = edit(file, &change).unwrap_err().to_string();
        assert!(text.starts_with("the clusters cannot be edited: ") && !text.contains('\n'), "{text}");
        text
    };
    assert!(refusal(Edit::Merge(vec![1])).ends_with("a merge needs two or more different clusters"));
    assert!(refusal(Edit::Merge(vec![1, 1])).ends_with("a merge needs two or more different clusters"));
    assert!(refusal(Edit::Merge(vec![1, 4])).ends_with("there is no cluster 4; the model has clusters 0 to 3"));
    assert!(refusal(Edit::Merge(vec![0, 1, 2, 3])).contains("leaves nothing to tell apart"));
    assert!(refusal(Edit::Name(9, None)).contains("there is no cluster 9"));
    let cut = Split { cluster: 0, direction: vec![1.0; 3], offset: 0.0, size: 0 };
    assert!(refusal(Edit::Split(cut.clone())).contains("an embedding of 7 values"));
    assert!(refusal(Edit::Split(Split { direction: vec![f32::NAN; 7], ..cut })).contains("has as many numbers"));
    assert!(undo(file).unwrap_err().to_string().ends_with("there is nothing to undo"));
    let merged = edit(file, &Edit::Merge(vec![0, 1])).unwrap();
    assert!(read_network(&merged).unwrap_err().to_string().contains("its clusters were edited"));
}

#[test]
fn a_history_that_cannot_be_is_refused() {
    use prost::Message as _;
    let merged = edit(&files()[0], &Edit::Merge(vec![0, 1])).unwrap();
    let with_history = |text: &str| {
        let mut model = crate::proto::Model::decode(&*merged).unwrap();
        model.metadata_props.retain(|entry| entry.key != "dtkc.graph_sha256");
        model.metadata_props.iter_mut().find(|entry| entry.key == "dtkc.edits").unwrap().value = text.into();
        model.encode_to_vec()
    };
    assert!(read_metadata(&with_history("[3]")).unwrap_err().to_string().contains("`dtkc.edits` cannot be read"));
    // A file may claim any past; going back to it must still fit the graph.
    let other = with_history(r#"[{"what": "x", "graph": false, "clusters": []}]"#);
    assert!(undo(&other).is_err());
}
