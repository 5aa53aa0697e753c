//! The answer to an assignment: JSON, CSV or one JSON object per line.

use actix_web::HttpRequest;
use actix_web::http::header::{Accept, Header, Quality, QualityItem};
use actix_web::mime::Mime;
use dtkc_human::cell;
use dtkc_item::ItemKind;
use dtkc_source::Reason;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::engine::Outcome;
use crate::error::ApiError;

/// One entry per image, in the order in which they were sent; those of a zip in natural order of their names.
#[derive(Debug, ToSchema)]
pub struct AssignAnswer {
    /// The model that answered.
    #[schema(example = "mnist")]
    pub model: String,
    /// How many images could not be used; each of them has an `error`.
    pub failed: usize,
    /// Files in zips that are no images and were passed over, where there are any.
    #[schema(required = false)]
    pub passed_over: PassedOver,
    /// The images; `sequences` where the model takes sequences.
    pub images: Vec<ImageAnswer>,
    /// What the list is called.
    #[schema(ignore)]
    pub kind: ItemKind,
}

impl Serialize for AssignAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut answer = serializer.serialize_map(None)?;
        answer.serialize_entry("model", &self.model)?;
        answer.serialize_entry("failed", &self.failed)?;
        if !self.passed_over.is_empty() {
            answer.serialize_entry("passed_over", &self.passed_over)?;
        }
        answer.serialize_entry(self.kind.name(), &self.images)?;
        answer.end()
    }
}

/// What was passed over.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct PassedOver {
    /// How many files.
    pub count: usize,
    /// The first hundred of them.
    pub files: Vec<PassedFile>,
}

/// One file that was passed over.
#[derive(Debug, Serialize, ToSchema)]
pub struct PassedFile {
    /// Its name in the zip.
    #[schema(example = "readme.txt")]
    pub name: String,
    /// The stable name of the reason.
    #[schema(example = "other_extension")]
    pub code: &'static str,
}

impl PassedOver {
    /// An answer need not repeat all that a zip holds.
    const MOST_FILES: usize = 100;

    /// Counts one file.
    pub fn add(&mut self, name: &str, reason: Reason) {
        self.count += 1;
        if self.files.len() < Self::MOST_FILES {
            self.files.push(PassedFile { name: name.to_owned(), code: reason.code() });
        }
    }

    /// Counts those of another zip, too.
    pub fn join(&mut self, other: Self) {
        self.count += other.count;
        self.files.extend(other.files);
        self.files.truncate(Self::MOST_FILES);
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// One image: its cluster, or its error.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct ImageAnswer {
    /// The file's name, or its position where it had none.
    #[schema(example = "digit.png")]
    pub name: String,
    /// The most probable cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cluster: Option<usize>,
    /// What that cluster is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cluster_name: Option<String>,
    /// Its probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, maximum = 1)]
    pub confidence: Option<f32>,
    /// How far it is from everything in the training set, where the model tells; above the model's `outlier_threshold` it is
    /// unlike anything there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, maximum = 1)]
    pub outlier: Option<f32>,
    /// The most probable clusters, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub top: Option<Vec<TopCluster>>,
    /// The embedding, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub embedding: Option<Vec<f32>>,
    /// Why this image could not be used, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// The stable name of that error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub code: Option<String>,
}

/// One of the most probable clusters of an image.
#[derive(Debug, Serialize, ToSchema)]
pub struct TopCluster {
    /// The cluster.
    pub cluster: usize,
    /// What it is called.
    pub cluster_name: String,
    /// Its probability.
    #[schema(minimum = 0, maximum = 1)]
    pub probability: f32,
}

/// An answered request, from which the answer is written.
pub struct Assigned {
    /// The model's name.
    pub model: String,
    /// What it takes.
    pub kind: ItemKind,
    /// Names of the images.
    pub names: Vec<String>,
    /// What was passed over.
    pub passed_over: PassedOver,
    /// One outcome per image.
    pub outcomes: Vec<Outcome>,
    /// Names of the clusters.
    pub cluster_names: std::sync::Arc<[String]>,
    /// How many clusters to list per image.
    pub top_k: usize,
}

impl Assigned {
    /// Puts the answer together.
    pub fn into_answer(self) -> AssignAnswer {
        let failed = self.outcomes.iter().filter(|o| o.is_err()).count();
        let images = self.names.into_iter().zip(self.outcomes);
        let images = images.map(|(name, outcome)| image_answer(name, outcome, &self.cluster_names, self.top_k));
        AssignAnswer {
            model: self.model,
            failed,
            passed_over: self.passed_over,
            images: images.collect(),
            kind: self.kind,
        }
    }
}

fn image_answer(name: String, outcome: Outcome, cluster_names: &[String], top_k: usize) -> ImageAnswer {
    match outcome {
        Ok(row) => ImageAnswer {
            name,
            cluster: Some(row.cluster),
            cluster_name: cluster_names.get(row.cluster).cloned(),
            confidence: row.probabilities.get(row.cluster).copied(),
            outlier: row.outlier,
            top: (top_k > 0).then(|| top(&row.probabilities, cluster_names, top_k)),
            embedding: row.embedding,
            ..ImageAnswer::default()
        },
        Err(problem) => ImageAnswer {
            name,
            error: Some(problem.message),
            code: Some(problem.code.into_owned()),
            ..ImageAnswer::default()
        },
    }
}

fn top(probabilities: &[f32], cluster_names: &[String], count: usize) -> Vec<TopCluster> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]).then(a.cmp(&b)));
    order.truncate(count);
    let entry = |cluster: usize| TopCluster {
        cluster,
        cluster_name: cluster_names.get(cluster).cloned().unwrap_or_default(),
        probability: probabilities[cluster],
    };
    order.into_iter().map(entry).collect()
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object.
    Json,
    /// A table with a head line.
    Csv,
    /// One JSON object per image and line.
    Ndjson,
}

impl Format {
    /// What the client likes best of what we have; JSON where it has no wish that we can meet. A quality of 0 means
    /// that it does not want that form.
    pub fn wanted(request: &HttpRequest) -> Self {
        let Ok(Accept(mut wishes)) = Accept::parse(request) else { return Self::Json };
        let essence = |wish: &QualityItem<Mime>| Self::known(wish.item.essence_str());
        let unwanted: Vec<Self> =
            wishes.iter().filter(|wish| wish.quality == Quality::ZERO).filter_map(essence).collect();
        wishes.retain(|wish| wish.quality > Quality::ZERO);
        let mut ranked = Accept(wishes).ranked().into_iter().filter_map(|mime| Self::known(mime.essence_str()));
        ranked.find(|form| !unwanted.contains(form)).unwrap_or(Self::Json)
    }

    fn known(essence: &str) -> Option<Self> {
        match essence {
            "application/json" | "application/*" | "*/*" => Some(Self::Json),
            "text/csv" | "text/*" => Some(Self::Csv),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some(Self::Ndjson),
            _ => None,
        }
    }

    /// The content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    /// The answer's bytes.
    pub fn write(self, answer: &AssignAnswer) -> Result<Vec<u8>, ApiError> {
        match self {
            Self::Json => serde_json::to_vec(answer).map_err(|_| ApiError::Internal),
            Self::Csv => csv(answer).map_err(|_| ApiError::Internal),
            Self::Ndjson => {
                let mut out = Vec::new();
                for image in &answer.images {
                    serde_json::to_writer(&mut out, image).map_err(|_| ApiError::Internal)?;
                    out.push(b'\n');
                }
                Ok(out)
            }
        }
    }
}

fn csv(answer: &AssignAnswer) -> Result<Vec<u8>, csv::Error> {
    let width = |of: fn(&ImageAnswer) -> usize| answer.images.iter().map(of).max().unwrap_or(0);
    let tops = width(|image| image.top.as_ref().map_or(0, Vec::len));
    let values = width(|image| image.embedding.as_ref().map_or(0, Vec::len));
    let outliers = width(|image| usize::from(image.outlier.is_some()));
    let mut head: Vec<String> = ["name", "cluster", "cluster_name", "confidence"].map(String::from).to_vec();
    head.extend((0..outliers).map(|_| "outlier".to_owned()));
    for n in 1..=tops {
        head.extend([format!("top{n}_cluster"), format!("top{n}_probability")]);
    }
    head.extend((0..values).map(|n| format!("embedding_{n}")));
    head.extend(["code", "error"].map(String::from));

    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&head)?;
    for image in &answer.images {
        writer.write_record(csv_row(image, outliers, tops, values))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

fn csv_row(image: &ImageAnswer, outliers: usize, tops: usize, values: usize) -> Vec<String> {
    // A name may come from anywhere, and the table may be opened in a spreadsheet.
    let text = |value: &Option<String>| value.as_deref().map(|text| cell(text).into_owned()).unwrap_or_default();
    let mut row = vec![
        cell(&image.name).into_owned(),
        image.cluster.map(|c| c.to_string()).unwrap_or_default(),
        text(&image.cluster_name),
        image.confidence.map(|c| c.to_string()).unwrap_or_default(),
    ];
    row.extend(image.outlier.map(|value| value.to_string()));
    let before = 4 + outliers;
    row.resize(before, String::new());
    let top = image.top.as_deref().unwrap_or_default();
    row.extend(top.iter().flat_map(|t| [t.cluster.to_string(), t.probability.to_string()]));
    row.resize(before + 2 * tops, String::new());
    row.extend(image.embedding.iter().flatten().map(|v| v.to_string()));
    row.resize(before + 2 * tops + values, String::new());
    row.extend([text(&image.code), text(&image.error)]);
    row
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use actix_web::test::TestRequest;
    use dtkc_item::ItemError;

    use super::*;
    use crate::engine::Row;

    fn answer(top_k: usize, embedding: Option<Vec<f32>>) -> AssignAnswer {
        let row = Row { cluster: 1, probabilities: vec![0.25, 0.5, 0.25], embedding, outlier: None };
        let problem = ItemError::new("truncated", "the PNG data is cut off");
        let assigned = Assigned {
            model: "mnist".into(),
            kind: ItemKind::Images,
            names: vec!["a, b.png".into(), "c.png".into()],
            passed_over: PassedOver::default(),
            outcomes: vec![Ok(row), Err(problem)],
            cluster_names: ["zeros", "ones", "twos"].map(String::from).into(),
            top_k,
        };
        assigned.into_answer()
    }

    fn text(format: Format, answer: &AssignAnswer) -> String {
        String::from_utf8(format.write(answer).unwrap()).unwrap()
    }

    #[test]
    fn json_has_only_what_was_asked() {
        let plain = text(Format::Json, &answer(0, None));
        assert_eq!(
            plain,
            r#"{"model":"mnist","failed":1,"images":[{"name":"a, b.png","cluster":1,"cluster_name":"ones","confidence":0.5},{"name":"c.png","error":"the PNG data is cut off","code":"truncated"}]}"#
        );
    }

    #[test]
    fn what_was_passed_over_is_counted_and_the_first_are_named() {
        let mut answer = answer(0, None);
        for i in 0..60 {
            answer.passed_over.add(&format!("{i}.txt"), Reason::OtherExtension);
        }
        let mut other = PassedOver::default();
        (0..60).for_each(|_| other.add("x", Reason::OtherContent));
        answer.passed_over.join(other);
        let json: serde_json::Value = serde_json::from_str(&text(Format::Json, &answer)).unwrap();
        assert_eq!(json["passed_over"]["count"], 120);
        assert_eq!(json["passed_over"]["files"].as_array().map(Vec::len), Some(100));
        assert_eq!(json["passed_over"]["files"][1], serde_json::json!({"name": "1.txt", "code": "other_extension"}));
    }

    #[test]
    fn ties_go_to_the_lower_id() {
        let answer = answer(5, None);
        let clusters: Vec<usize> = answer.images[0].top.as_ref().unwrap().iter().map(|t| t.cluster).collect();
        assert_eq!(clusters, [1, 0, 2]);
    }

    #[test]
    fn csv_keeps_its_columns() {
        let csv = text(Format::Csv, &answer(1, Some(vec![1.5, -2.0])));
        assert_eq!(
            csv,
            "name,cluster,cluster_name,confidence,top1_cluster,top1_probability,embedding_0,embedding_1,code,error\n\
             \"a, b.png\",1,ones,0.5,1,0.5,1.5,-2,,\n\
             c.png,,,,,,,,truncated,the PNG data is cut off\n"
        );
    }

    #[test]
    fn how_far_an_image_is_stands_beside_its_confidence() {
        let mut answer = answer(1, None);
        answer.images[0].outlier = Some(0.995);
        assert!(text(Format::Json, &answer).contains(r#""confidence":0.5,"outlier":0.995,"top":"#));
        assert_eq!(
            text(Format::Csv, &answer),
            "name,cluster,cluster_name,confidence,outlier,top1_cluster,top1_probability,code,error\n\
             \"a, b.png\",1,ones,0.5,0.995,1,0.5,,\n\
             c.png,,,,,,,truncated,the PNG data is cut off\n"
        );
    }

    #[test]
    fn csv_holds_no_formulas_and_numbers_stay_numbers() {
        let mut answer = answer(0, Some(vec![-2.0]));
        answer.images[0].name = "=HYPERLINK(\"http://x\")".into();
        answer.images[0].cluster_name = Some("+ones".into());
        answer.images[1].name = "-c.png".into();
        let csv = text(Format::Csv, &answer);
        let lines: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!(lines[0], "\"'=HYPERLINK(\"\"http://x\"\")\",1,'+ones,0.5,-2,,");
        assert!(lines[1].starts_with("'-c.png,"), "{csv}");
        assert!(text(Format::Json, &answer).contains(r#""name":"-c.png""#));
    }

    #[test]
    fn ndjson_has_a_line_per_image() {
        assert_eq!(text(Format::Ndjson, &answer(0, None)).lines().count(), 2);
    }

    #[test]
    fn the_client_chooses_the_form() {
        let wanted =
            |accept: &str| Format::wanted(&TestRequest::default().insert_header(("accept", accept)).to_http_request());
        assert_eq!(wanted("text/csv"), Format::Csv);
        assert_eq!(wanted("application/x-ndjson"), Format::Ndjson);
        assert_eq!(wanted("text/html, application/xhtml+xml, */*;q=0.8"), Format::Json);
        assert_eq!(wanted("application/json;q=0.2, text/csv"), Format::Csv);
        assert_eq!(wanted("image/png"), Format::Json);
        assert_eq!(wanted("text/csv;q=0"), Format::Json);
        assert_eq!(wanted("text/csv;q=0, application/x-ndjson;q=0.1"), Format::Ndjson);
        assert_eq!(wanted("text/*, text/csv;q=0"), Format::Json);
        assert_eq!(Format::wanted(&TestRequest::default().to_http_request()), Format::Json);
    }
}
