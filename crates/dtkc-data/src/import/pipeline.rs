//! Records to pixels of one shape, decoded in parallel, in order, holding only a few at a time.
//!
//! One thread reads the source and cuts the stream into small batches, worker threads decode them, and
//! the calling thread takes the results in the order of the source. Each batch carries its own answer
//! channel, and the channel of answers is bounded, so the reader waits when the writer is slow.

use std::ops::ControlFlow;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use dtkc_image::{Limits, Preparer};
use dtkc_item::{ImageSpec, ItemError, read_file};

use super::ImportError;
use super::record::{Content, ContentForm, Importer, Record};

/// Records of a batch at most.
const BATCH_RECORDS: usize = 32;
/// Encoded bytes of a batch, beyond which it is closed.
const BATCH_BYTES: usize = 1 << 20;
/// Decoded bytes of a batch, beyond which it is closed.
const BATCH_PIXELS: usize = 4 << 20;

/// A record that is ready to be written, or the reason why it is not.
#[derive(Debug, PartialEq)]
pub struct Item {
    /// Pixels or values, or why there are none.
    pub content: Result<Ready, ItemError>,
    /// The label as the source gives it.
    pub label: Option<i64>,
    /// The path below the source.
    pub path: Option<String>,
}

/// What can be written.
#[derive(Debug, PartialEq)]
pub enum Ready {
    /// An image in the dataset's shape.
    Pixels(Vec<u8>),
    /// A sequence.
    Sequence(Vec<f32>),
}

/// How records become items.
#[derive(Debug, Clone, Copy)]
pub struct Pipeline {
    /// The images of the dataset, and how others become one of them.
    pub spec: ImageSpec,
    /// What one image may cost.
    pub limits: Limits,
    /// Threads that decode.
    pub workers: usize,
}

/// Takes items in order. `Break` means that no more are wanted.
pub type Take<'a> = dyn FnMut(Item) -> Result<ControlFlow<()>, ImportError> + 'a;
/// Says whether a record is worth the work.
pub type Filter<'a> = dyn Fn(&Record) -> bool + Sync + 'a;

impl Pipeline {
    /// Sends every wanted record of a source through.
    pub fn run(&self, source: &mut dyn Importer, wanted: &Filter<'_>, take: &mut Take<'_>) -> Result<(), ImportError> {
        let from = source.describe().form;
        if self.is_ready(from) {
            return as_they_are(source, wanted, take);
        }
        self.run_in_parallel(source, from, wanted, take)
    }

    /// Whether the records of such a source need no work.
    fn is_ready(&self, from: ContentForm) -> bool {
        match from {
            ContentForm::Sequences { .. } => true,
            ContentForm::Pixels(shape) => shape == self.spec.shape(),
            ContentForm::Encoded => false,
        }
    }

    fn run_in_parallel(
        &self,
        source: &mut dyn Importer,
        from: ContentForm,
        wanted: &Filter<'_>,
        take: &mut Take<'_>,
    ) -> Result<(), ImportError> {
        let workers = self.workers.max(1);
        let (work, jobs) = bounded::<Job>(workers);
        let (answers, order) = bounded::<Receiver<Vec<Item>>>(2 * workers + 2);
        thread::scope(|scope| {
            let reader = scope.spawn(|| self.read(source, wanted, work, answers));
            for _ in 0..workers {
                let jobs = jobs.clone();
                scope.spawn(move || self.work(from, &jobs));
            }
            drop(jobs);
            let taken = take_in_order(&order, take);
            // The reader notices at its next batch that nobody listens any more.
            drop(order);
            let read = reader
                .join()
                .unwrap_or_else(|_| Err(ImportError::source("the source", "reading it failed unexpectedly")));
            // A failure to write ends the reading too, and is the one to report.
            taken.and(read)
        })
    }

    fn read(
        &self,
        source: &mut dyn Importer,
        wanted: &Filter<'_>,
        work: Sender<Job>,
        answers: Sender<Receiver<Vec<Item>>>,
    ) -> Result<(), ImportError> {
        let most = (BATCH_PIXELS / self.spec.bytes().max(1)).clamp(1, BATCH_RECORDS);
        let mut batch = Vec::with_capacity(most);
        let mut bytes = 0;
        let send = |records: Vec<Record>| {
            let (answer, result) = bounded(1);
            let sent = answers.send(result).is_ok() && work.send(Job { records, answer }).is_ok();
            if sent { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        source.stream(&mut |record| {
            if !wanted(&record) {
                return ControlFlow::Continue(());
            }
            bytes += weight(&record.content);
            batch.push(record);
            if batch.len() < most && bytes < BATCH_BYTES {
                return ControlFlow::Continue(());
            }
            bytes = 0;
            send(std::mem::replace(&mut batch, Vec::with_capacity(most)))
        })?;
        if !batch.is_empty() {
            let _ = send(batch);
        }
        Ok(())
    }

    fn work(&self, from: ContentForm, jobs: &Receiver<Job>) {
        let mut preparer = Preparer::new(self.spec, self.limits);
        for Job { records, answer } in jobs {
            let items = records.into_iter().map(|record| self.prepare(&mut preparer, from, record)).collect();
            // Nobody listens after an error elsewhere.
            let _ = answer.send(items);
        }
    }

    fn prepare(&self, preparer: &mut Preparer, from: ContentForm, record: Record) -> Item {
        let content = match record.content {
            Content::File(path) => read_file(&path, self.limits.max_bytes).and_then(|bytes| preparer.prepare(&bytes)),
            Content::Encoded(bytes) => preparer.prepare(&bytes),
            Content::Pixels(pixels) => {
                let ContentForm::Pixels(shape) = from else { return as_it_is(unexpected(record.path)) };
                let mut out = vec![0; self.spec.bytes()];
                preparer.resize_pixels(&pixels, shape, &mut out).map(|()| out)
            }
            other => return as_it_is(Record { content: other, ..record }),
        };
        Item { content: content.map(Ready::Pixels), label: record.label, path: record.path }
    }
}

/// Sends every wanted record of a source on that needs no work.
pub fn as_they_are(source: &mut dyn Importer, wanted: &Filter<'_>, take: &mut Take<'_>) -> Result<(), ImportError> {
    let mut failed = None;
    source.stream(&mut |record| match wanted(&record) {
        true => take(as_it_is(record)).unwrap_or_else(|error| {
            failed = Some(error);
            ControlFlow::Break(())
        }),
        false => ControlFlow::Continue(()),
    })?;
    failed.map_or(Ok(()), Err)
}

struct Job {
    records: Vec<Record>,
    answer: Sender<Vec<Item>>,
}

fn take_in_order(order: &Receiver<Receiver<Vec<Item>>>, take: &mut Take<'_>) -> Result<(), ImportError> {
    for answer in order {
        let items =
            answer.recv().map_err(|_| ImportError::source("decoding", "a worker thread stopped unexpectedly"))?;
        for item in items {
            if take(item)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn weight(content: &Content) -> usize {
    match content {
        Content::Encoded(bytes) | Content::Pixels(bytes) => bytes.len(),
        _ => 0,
    }
}

fn unexpected(path: Option<String>) -> Record {
    Record { content: Content::Unreadable(ItemError::new("wrong_length", "pixels of unknown size")), label: None, path }
}

fn as_it_is(record: Record) -> Item {
    let content = match record.content {
        Content::Pixels(pixels) => Ok(Ready::Pixels(pixels)),
        Content::Sequence(values) => Ok(Ready::Sequence(values)),
        Content::Unreadable(error) => Err(error),
        Content::File(_) | Content::Encoded(_) => {
            Err(ItemError::new("unsupported", "an encoded image among plain pixels"))
        }
    };
    Item { content, label: record.label, path: record.path }
}

#[cfg(test)]
mod tests {
    use dtkc_item::{Color, ImageShape, Resize};

    use super::*;
    use dtkc_formats::ReadError;
    use dtkc_formats::record::{Description, Sink};

    /// Yields gray images of 4 x 4 whose pixels all are the index.
    struct Numbers {
        count: usize,
        fail_at: Option<usize>,
        description: Description,
    }

    impl Importer for Numbers {
        fn describe(&self) -> &Description {
            &self.description
        }

        fn stream(&mut self, sink: &mut Sink<'_>) -> Result<(), ReadError> {
            for i in 0..self.count {
                if self.fail_at == Some(i) {
                    return Err(ReadError::source("numbers", "cut off"));
                }
                let record = Record { content: Content::Pixels(vec![i as u8; 16]), label: Some(i as i64), path: None };
                if sink(record).is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    fn numbers(count: usize, fail_at: Option<usize>) -> Numbers {
        let form = ContentForm::Pixels(ImageShape { height: 4, width: 4, channels: 1 });
        Numbers { count, fail_at, description: Description::new("test", form) }
    }

    fn pipeline(side: usize) -> Pipeline {
        let spec = ImageSpec { height: side, width: side, color: Color::Gray, resize: Resize::Stretch };
        Pipeline { spec, limits: Limits::default(), workers: 3 }
    }

    #[test]
    fn order_is_kept_with_and_without_workers() {
        for side in [2, 4] {
            let mut seen = Vec::new();
            let result = pipeline(side).run(&mut numbers(1000, None), &|r| r.label != Some(5), &mut |item| {
                let Ok(Ready::Pixels(pixels)) = &item.content else { panic!("{item:?}") };
                assert_eq!(pixels, &vec![item.label.unwrap() as u8; side * side]);
                seen.push(item.label.unwrap());
                Ok(ControlFlow::Continue(()))
            });
            result.unwrap();
            assert_eq!(seen, (0..1000).filter(|&i| i != 5).collect::<Vec<i64>>());
        }
    }

    #[test]
    fn a_break_ends_the_reading() {
        for side in [2, 4] {
            let mut seen = 0;
            let result = pipeline(side).run(&mut numbers(usize::MAX, None), &|_| true, &mut |_| {
                seen += 1;
                Ok(if seen == 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            });
            result.unwrap();
            assert_eq!(seen, 100);
        }
    }

    #[test]
    fn errors_of_either_side_come_out() {
        for side in [2, 4] {
            let take = &mut |_| Ok(ControlFlow::Continue(()));
            let error = pipeline(side).run(&mut numbers(1000, Some(500)), &|_| true, take).unwrap_err();
            assert!(error.to_string().contains("cut off"));
            let full = &mut |_| Err(ImportError::source("disk", "full"));
            let error = pipeline(side).run(&mut numbers(usize::MAX, None), &|_| true, full).unwrap_err();
            assert!(error.to_string().contains("full"));
        }
    }
}
