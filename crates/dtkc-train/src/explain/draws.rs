//! Which background image and which place on the way from it each draw takes.
//!
//! Places are one in each of as many equal parts of the way as there are draws. Background images come in turn, and where
//! each comes several times, each has its places spread over the whole way. The expectation is that of independent draws.
//! The generator is small enough to be written again elsewhere, which `scripts/check-shap.py` does to give `shap` the same
//! draws.

/// One draw: a background image and a place between it (0) and the image that is explained (1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Draw {
    pub background: usize,
    pub place: f32,
}

/// The draws for image number `image`, of `samples` in all, from `backgrounds` images.
pub(super) fn draws(seed: u64, image: usize, samples: usize, backgrounds: usize) -> Vec<Draw> {
    let mut random = SplitMix(seed ^ (image as u64).wrapping_mul(0xd134_2543_de82_ef95));
    let order = random.order(backgrounds);
    // In a round every background image has a part of its own; the rounds follow each other on the way.
    let rounds = (0..samples).step_by(backgrounds.max(1));
    let round = |first: usize| {
        let order = random.order(backgrounds.min(samples - first));
        order.into_iter().map(move |part| first + part).collect::<Vec<_>>()
    };
    let parts: Vec<usize> = rounds.flat_map(round).collect();
    let draw = |(turn, part): (usize, usize)| {
        let place = (part as f64 + random.unit()) / samples as f64;
        Draw { background: order[turn % backgrounds], place: place as f32 }
    };
    parts.into_iter().enumerate().map(draw).collect()
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The numbers below `count` in a random order.
    fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let other = ((u128::from(self.next()) * (last as u128 + 1)) >> 64) as usize;
            order.swap(last, other);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_the_way_and_backgrounds_come_equally_often() {
        let all = draws(7, 3, 40, 10);
        let mut parts: Vec<usize> = all.iter().map(|draw| (draw.place * 40.0) as usize).collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..40).collect::<Vec<_>>());
        for background in 0..10 {
            let places = all.iter().filter(|draw| draw.background == background).map(|draw| draw.place);
            let quarters: Vec<usize> = places.map(|place| (place * 4.0) as usize).collect();
            assert_eq!(quarters, [0, 1, 2, 3], "each background image is seen from everywhere");
        }
        let uneven = draws(7, 3, 25, 10);
        let mut parts: Vec<usize> = uneven.iter().map(|draw| (draw.place * 25.0) as usize).collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..25).collect::<Vec<_>>());
        assert!(all.iter().all(|draw| (0.0..1.0).contains(&draw.place)));
    }

    #[test]
    fn seeds_and_images_have_their_own_draws() {
        assert_eq!(draws(1, 0, 20, 5), draws(1, 0, 20, 5));
        assert_ne!(draws(1, 0, 20, 5), draws(1, 1, 20, 5));
        assert_ne!(draws(1, 0, 20, 5), draws(2, 0, 20, 5));
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first numbers of the reference implementation for the seed 1234567.
        let mut random = SplitMix(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
