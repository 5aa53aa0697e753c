//! The loss of the last epochs.

/// Losses of the last epochs that can be compared, as many as one measure takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recent(pub Vec<f64>);

impl Recent {
    /// The mean loss of so many epochs, this one the last, once there are as many.
    pub fn mean_with(&mut self, loss: f64, epochs: usize) -> Option<f64> {
        self.0.push(loss);
        let first = self.0.len().checked_sub(epochs.max(1))?;
        self.0.drain(..first);
        Some(self.0.iter().sum::<f64>() / self.0.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_mean_once_there_are_enough_epochs() {
        let mut recent = Recent::default();
        let means: Vec<_> = [4.0, 2.0, 6.0, 1.0].into_iter().map(|loss| recent.mean_with(loss, 3)).collect();
        assert_eq!(means, [None, None, Some(4.0), Some(3.0)]);
        assert_eq!(recent.0, [2.0, 6.0, 1.0]);
    }

    #[test]
    fn of_one_epoch_it_is_the_loss_itself() {
        let mut recent = Recent::default();
        assert_eq!([0.1, 0.7].map(|loss| recent.mean_with(loss, 1)), [Some(0.1), Some(0.7)]);
        assert_eq!(recent.mean_with(0.3, 0), Some(0.3));
    }
}
