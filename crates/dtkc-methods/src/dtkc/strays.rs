//! Groups of images that lie in one cluster and by what they look like belong to another: sevens with a bar among the twos.
//!
//! The network finds them alike, so they are a group in its embedding, but it has put the group in the wrong place, and its own
//! views and embeddings repeat that. Neighbours by outlines know nothing of what was learnt: where those of a group, its own
//! images left out, lie in another cluster clearly more often than in the group's own, also for each of the images that are
//! there, the group moves there.

use super::grains::{FEWEST, Grains, groupings};
use crate::LearnError;
use crate::nearest::Neighbours;
use crate::spectral::Graph;

/// Groups that are looked at for every two clusters: nobody knows how large one that strayed is.
const FOR_TWO: [usize; 4] = [3, 4, 6, 8];
/// How many times as often neighbours must lie in the other cluster.
const CLEARLY: f64 = 1.5;
/// By how many standard deviations of such counts, too, if they were chance.
const DEVIATIONS: f64 = 2.0;
/// How well eigenvectors must fit: groups are looked at, not kept.
const RESIDUAL: f64 = 1e-4;

/// Moves strays to where they belong, those first about which neighbours leave the least doubt, and says how many images moved.
/// Groups are those of `graph`; `near` is who is near whom by something that was not learnt.
pub(super) fn bring_home(
    clusters: &mut [u32],
    k: usize,
    (graph, near): (&Graph, &Neighbours),
    seed: u64,
    stop: &dyn Fn() -> bool,
) -> Result<usize, LearnError> {
    if near.count == 0 {
        return Ok(0);
    }
    let grains = Grains { clusters: k, for_two: &FOR_TWO, residual: RESIDUAL, seed };
    let groups: Vec<Vec<usize>> =
        groupings(graph, &grains, stop)?.iter().flat_map(|grouping| grouping.members()).collect();
    let mut moved = 0;
    // A group that moves changes what is said about others. Hardly ever do two; many would be noise.
    for _ in 0..k {
        let strays = groups.iter().filter_map(|group| Stray::find(group, clusters, k, near));
        let Some(stray) = strays.reduce(|best, next| if next.gain > best.gain { next } else { best }) else { break };
        stray.images.iter().for_each(|&image| clusters[image] = stray.home);
        moved += stray.images.len();
    }
    Ok(moved)
}

/// Images that should move.
struct Stray {
    images: Vec<usize>,
    home: u32,
    /// Ties to the new cluster beyond those to the present one.
    gain: usize,
}

impl Stray {
    /// The images of a group that share most of its images' cluster, where their neighbours are clearly in another.
    fn find(group: &[usize], clusters: &[u32], k: usize, near: &Neighbours) -> Option<Self> {
        let own = most(&counts(group.iter().map(|&image| clusters[image]), k));
        let images: Vec<usize> = group.iter().copied().filter(|&image| clusters[image] as usize == own).collect();
        let size_of = |wanted: usize| clusters.iter().filter(|&&cluster| cluster as usize == wanted).count();
        let size = size_of(own);
        // What most of a cluster is cannot have strayed into it.
        if images.len() < FEWEST || 2 * images.len() >= size {
            return None;
        }
        let others = images.iter().flat_map(|&image| near.of(image)).map(|&other| other as usize);
        let others = others.filter(|other| images.binary_search(other).is_err());
        let mut ties = counts(others.map(|other| clusters[other]), k);
        let stay = std::mem::take(&mut ties[own]);
        let home = most(&ties);
        let gain = ties[home].saturating_sub(stay);
        let [there, left] = [size_of(home), size - images.len()].map(|images| images as f64);
        let (home_ties, own_ties) = (ties[home] as f64, CLEARLY * stay as f64);
        // Whatever is near to many things is nearest to some of the largest cluster: for each of its images, too.
        let is_clear = home_ties > own_ties && home_ties * left > own_ties * there;
        let is_no_chance = gain as f64 > DEVIATIONS * ((ties[home] + stay) as f64).sqrt();
        (is_clear && is_no_chance).then_some(Self { images, home: home as u32, gain })
    }
}

fn counts(clusters: impl Iterator<Item = u32>, k: usize) -> Vec<usize> {
    let mut counts = vec![0; k];
    clusters.for_each(|cluster| counts[cluster as usize] += 1);
    counts
}

/// The place of the largest count, the first of equal ones.
fn most(counts: &[usize]) -> usize {
    (0..counts.len()).reduce(|best, next| if counts[next] > counts[best] { next } else { best }).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::kmeans::Points;
    use crate::random::Random;

    /// Three forms of 100 images: `a`, its variant `b`, and `c`. As the network sees them all are apart; by outlines `a` and `b`
    /// are next to each other and `c` is far away.
    fn forms() -> (Graph, Neighbours) {
        let mut random = Random::new(5, b"test....", 0);
        let mut near = |middles: [f32; 3]| {
            let rows: Vec<f32> = (0..600).map(|i| middles[i / 200] * (i % 2) as f32 + random.unit() as f32).collect();
            Neighbours::find(&Points { values: &rows, width: 2 }, 10, &|| false).unwrap()
        };
        let (seen, outlines) = (near([0.0, 3.0, 6.0]), near([0.0, 0.2, 9.0]));
        (Graph::mutual(&[&seen, &outlines]), outlines)
    }

    fn moved(clusters: &mut [u32]) -> usize {
        let (graph, near) = forms();
        bring_home(clusters, 2, (&graph, &near), 1, &|| false).unwrap()
    }

    /// `a` and `b` in one cluster and `c` in the other.
    fn right() -> Vec<u32> {
        (0..300).map(|i| u32::from(i >= 200)).collect()
    }

    #[test]
    fn a_variant_among_strangers_moves_to_its_like() {
        let mut clusters: Vec<u32> = (0..300).map(|i| u32::from(i >= 130)).collect();
        moved(&mut clusters);
        let wrong = clusters.iter().zip(right()).filter(|&(&found, right)| found != right).count();
        assert!(wrong <= 20, "{wrong} of 70 images are still astray");
    }

    #[test]
    fn what_is_right_stays() {
        let mut clusters = right();
        assert_eq!(moved(&mut clusters), 0);
        assert_eq!(clusters, right());
    }

    #[test]
    fn too_few_images_stay_where_they_are() {
        let mut clusters = right();
        clusters[150] = 1;
        assert_eq!(moved(&mut clusters), 0);
        let (graph, _) = forms();
        let near = Neighbours { count: 0, items: Vec::new(), squares: Vec::new() };
        assert_eq!(bring_home(&mut [0; 300], 2, (&graph, &near), 1, &|| false).unwrap(), 0);
    }

    #[test]
    fn a_large_cluster_does_not_draw_what_is_somewhat_like_it() {
        // Of seven images near each of the first 20 two are others of its cluster and five of the other one.
        let is_stray = |own: u32, there: u32| {
            let clusters: Vec<u32> = (0..20 + own + there).map(|i| u32::from(i >= 20 + own)).collect();
            let items = (0..20).flat_map(|_| [20, 21].into_iter().chain((20 + own..).take(5))).collect();
            let near = Neighbours { count: 7, items, squares: Vec::new() };
            Stray::find(&(0..20).collect::<Vec<_>>(), &clusters, 2, &near).is_some()
        };
        assert!(is_stray(60, 80), "both are about as large");
        assert!(!is_stray(60, 400), "five of 400 are fewer than two of 60");
    }
}
