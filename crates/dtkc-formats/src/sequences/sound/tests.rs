//! The numbers are those of SciPy: scripts/golden/sound_golden.py.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Golden {
    rate: u32,
    samples: Vec<i16>,
    spectrogram: Vec<Vec<f64>>,
    mfcc: Vec<Vec<f64>>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden.json")).unwrap()
}

fn wav(rate: u32, channels: u16, samples: &[i16]) -> Vec<u8> {
    let spec = hound::WavSpec { channels, sample_rate: rate, bits_per_sample: 16, sample_format: SampleFormat::Int };
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
    samples.iter().for_each(|&sample| writer.write_sample(sample).unwrap());
    writer.finalize().unwrap();
    bytes.into_inner()
}

fn compare(kind: SoundKind, expected: &[Vec<f64>], tolerance: f64) {
    let golden = golden();
    let mut sound = Sound::new(SoundOptions { kind, ..SoundOptions::default() });
    let (dim, values) = sound.steps(&wav(golden.rate, 1, &golden.samples)).unwrap();
    assert_eq!((dim, values.len()), (expected[0].len(), expected.len() * expected[0].len()));
    for (found, expected) in values.iter().zip(expected.iter().flatten()) {
        assert!((f64::from(*found) - expected).abs() <= tolerance * (1.0 + expected.abs()), "{found} {expected}");
    }
}

#[test]
fn spectra_are_those_of_scipy() {
    compare(SoundKind::Spectrogram, &golden().spectrogram, 1e-7);
}

#[test]
fn coefficients_are_those_of_numpy_and_scipy() {
    compare(SoundKind::Mfcc, &golden().mfcc, 1e-5);
}

#[test]
fn channels_are_averaged_and_short_sounds_are_one_step() {
    let mut sound = Sound::new(SoundOptions::default());
    let (dim, mono) = sound.steps(&wav(8000, 1, &[1000, 2000, 3000])).unwrap();
    assert_eq!((dim, mono.len()), (129, 129));
    let (_, stereo) = sound.steps(&wav(8000, 2, &[0, 2000, 4000, 0, 6000, 0])).unwrap();
    assert_eq!(stereo, mono);
    assert!(sound.steps(&wav(8000, 1, &[])).unwrap().1.is_empty());
}

#[test]
fn faults_are_named() {
    let mut sound = Sound::new(SoundOptions::default());
    sound.steps(&wav(8000, 1, &[1; 400])).unwrap();
    let error = sound.steps(&wav(16000, 1, &[1; 400])).unwrap_err();
    assert!(error.message.contains("16000 samples a second, the first sound has 8000"), "{error}");
    let bytes = wav(8000, 1, &[1; 400]);
    for cut in [0, 3, 20, 44, 60, 801] {
        assert_eq!(sound.steps(&bytes[..cut]).unwrap_err().code, "bad_sound", "{cut}");
    }
    let mut long = Sound::new(SoundOptions { window: 1e9, ..SoundOptions::default() });
    assert!(long.steps(&bytes).unwrap_err().message.contains("--window"));
    let mut fine = Sound::new(SoundOptions { window: 8000.0, hop: 0.001, ..SoundOptions::default() });
    let error = fine.steps(&wav(8000, 1, &vec![1; 90_000])).unwrap_err();
    assert!(error.message.contains("--hop"), "{error}");
}
