//! Sounds in WAV files as sequences: the spectrum of one short window after the other, or its cepstral coefficients.
//!
//! The numbers are those of `scipy.signal.spectrogram(x, rate, "hann", window, window - hop, nfft, detrend=False,
//! scaling="spectrum", mode="magnitude")` with `nfft` the next power of two; a golden test compares them.

mod fft;
mod mel;

use std::io::Cursor;
use std::str::FromStr;

use dtkc_item::ItemError;
use hound::{SampleFormat, WavReader};

use self::fft::Fourier;
use self::mel::{COEFFICIENTS, Mel};
use super::MAX_VALUES;

/// Longer windows than this are no short pieces of a sound.
const MAX_WINDOW: usize = 1 << 16;

/// What is made of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SoundKind {
    /// The magnitude of every frequency.
    #[default]
    Spectrogram,
    /// 13 mel-frequency cepstral coefficients.
    Mfcc,
}

impl FromStr for SoundKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "spectrogram" => Ok(Self::Spectrogram),
            "mfcc" => Ok(Self::Mfcc),
            _ => Err(format!("'{text}' is not what a sound can become; use spectrogram or mfcc")),
        }
    }
}

/// A number of milliseconds as people write it, above 0.
pub fn milliseconds(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches("ms").trim().parse::<f64>().ok();
    number
        .filter(|ms| *ms > 0.0 && ms.is_finite())
        .ok_or_else(|| format!("'{text}' is not a number of milliseconds; write for example 25"))
}

/// How sounds become sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoundOptions {
    /// What is made of a window.
    pub kind: SoundKind,
    /// Milliseconds of a window.
    pub window: f64,
    /// Milliseconds from one window to the next.
    pub hop: f64,
}

impl Default for SoundOptions {
    fn default() -> Self {
        Self { kind: SoundKind::default(), window: 25.0, hop: 10.0 }
    }
}

impl SoundOptions {
    /// What they say, for people to read.
    pub fn described(&self) -> String {
        let what = match self.kind {
            SoundKind::Spectrogram => "magnitude spectra",
            SoundKind::Mfcc => "13 mel-frequency cepstral coefficients",
        };
        format!(
            "steps are {what} of windows of {} ms, one every {} ms (--sound, --window, --hop)",
            self.window, self.hop
        )
    }
}

/// Makes sequences of sounds, all of the rate of the first one.
#[derive(Debug)]
pub struct Sound {
    options: SoundOptions,
    analysis: Option<Analysis>,
}

/// Prepared for one rate.
#[derive(Debug)]
struct Analysis {
    rate: u32,
    window: Vec<f64>,
    hop: usize,
    bins: usize,
    fourier: Fourier,
    mel: Option<Mel>,
}

impl Sound {
    /// Nothing is known of the sounds yet.
    pub fn new(options: SoundOptions) -> Self {
        Self { options, analysis: None }
    }

    /// A WAV file as the number of values of a step, and the steps.
    pub fn steps(&mut self, bytes: &[u8]) -> Result<(usize, Vec<f32>), ItemError> {
        let (rate, samples) = samples(bytes)?;
        let analysis = match &mut self.analysis {
            Some(analysis) if analysis.rate != rate => {
                let first = analysis.rate;
                let text =
                    format!("it has {rate} samples a second, the first sound has {first}; bring all to one rate");
                return Err(ItemError::new("other_rate", text));
            }
            Some(analysis) => analysis,
            none => none.insert(Analysis::new(rate, self.options)?),
        };
        analysis.steps(&samples)
    }
}

impl Analysis {
    fn new(rate: u32, options: SoundOptions) -> Result<Self, ItemError> {
        let samples = |milliseconds: f64| (f64::from(rate) * milliseconds / 1000.0).round() as usize;
        let (length, hop) = (samples(options.window), samples(options.hop).max(1));
        if !(2..=MAX_WINDOW).contains(&length) {
            let text = format!(
                "a window of {} ms is {length} samples at {rate} a second; choose one of 2 to {MAX_WINDOW} with --window",
                options.window
            );
            return Err(ItemError::new("bad_window", text));
        }
        let nfft = length.next_power_of_two();
        let hann = |i: usize| 0.5 - 0.5 * (2.0 * std::f64::consts::PI * i as f64 / length as f64).cos();
        let sum: f64 = (0..length).map(hann).sum();
        // So that a tone has the same height in windows of any length.
        let window = (0..length).map(|i| hann(i) / sum).collect();
        let bins = nfft / 2 + 1;
        let mel = (options.kind == SoundKind::Mfcc).then(|| Mel::new(rate, bins));
        Ok(Self { rate, window, hop, bins, fourier: Fourier::new(nfft), mel })
    }

    /// One step for each whole window; a sound that is shorter than one is followed by silence.
    fn steps(&mut self, samples: &[f32]) -> Result<(usize, Vec<f32>), ItemError> {
        let dim = if self.mel.is_some() { COEFFICIENTS } else { self.bins };
        let length = self.window.len();
        let count = match samples.len() {
            0 => 0,
            n => n.saturating_sub(length) / self.hop + 1,
        };
        if count.saturating_mul(dim) > MAX_VALUES {
            let text =
                format!("it gives {count} steps of {dim} values, more than {MAX_VALUES} in all; choose a longer --hop");
            return Err(ItemError::new("too_large", text));
        }
        let mut values = Vec::with_capacity(count * dim);
        let mut magnitudes = Vec::with_capacity(self.bins);
        for step in 0..count {
            let piece = &samples[step * self.hop..samples.len().min(step * self.hop + length)];
            magnitudes.clear();
            let windowed = piece.iter().zip(&self.window).map(|(sample, weight)| f64::from(*sample) * weight);
            magnitudes.extend(self.fourier.magnitudes(windowed));
            match &self.mel {
                Some(mel) => values.extend(mel.coefficients(&magnitudes).map(|value| value as f32)),
                None => values.extend(magnitudes.iter().map(|&value| value as f32)),
            }
        }
        Ok((dim, values))
    }
}

/// The rate and the samples of a WAV file, from -1 to 1, the mean of its channels.
fn samples(bytes: &[u8]) -> Result<(u32, Vec<f32>), ItemError> {
    let bad =
        |error: hound::Error| ItemError::new("bad_sound", format!("it is not a WAV file that can be read ({error})"));
    let mut reader = WavReader::new(Cursor::new(bytes)).map_err(bad)?;
    let spec = reader.spec();
    let channels = usize::from(spec.channels);
    if channels == 0 || spec.sample_rate == 0 || !(1..=32).contains(&spec.bits_per_sample) {
        return Err(ItemError::new("bad_sound", "its header names no channels, no rate or no bits; record it again"));
    }
    let whole: Vec<f32> = match spec.sample_format {
        SampleFormat::Float => reader.samples::<f32>().collect::<Result<_, _>>().map_err(bad)?,
        SampleFormat::Int => {
            let full = 2f32.powi(i32::from(spec.bits_per_sample) - 1);
            reader
                .samples::<i32>()
                .map(|sample| sample.map(|s| s as f32 / full))
                .collect::<Result<_, _>>()
                .map_err(bad)?
        }
    };
    if channels == 1 {
        return Ok((spec.sample_rate, whole));
    }
    let mean = |frame: &[f32]| frame.iter().sum::<f32>() / channels as f32;
    Ok((spec.sample_rate, whole.chunks_exact(channels).map(mean).collect()))
}

#[cfg(test)]
mod tests;
