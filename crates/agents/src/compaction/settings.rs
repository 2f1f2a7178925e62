//! The user's settings of compaction.

/// When and how a history is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionSettings {
    /// Whether it happens by itself. A request that the service calls too long compacts in any case.
    pub auto: bool,
    /// How full is too full.
    pub threshold: Threshold,
    /// Messages at the end that stay whole.
    pub preserve_recent_messages: usize,
}

/// How full is too full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Of the model's window, above 0 and at most 1.
    Share(f64),
    /// Tokens, whatever the window.
    Tokens(u64),
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self { auto: true, threshold: Threshold::Share(0.8), preserve_recent_messages: 4 }
    }
}

impl Threshold {
    /// In tokens; `None` where it is a share of a window that nobody knows.
    pub(crate) fn tokens(self, window: Option<u64>) -> Option<u64> {
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Share(share) => {
                // Windows are far below the numbers that a float holds exactly.
                #[expect(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a window, above 0"
                )]
                let of = |window: u64| (window as f64 * share.clamp(0.01, 1.0)) as u64;
                window.map(of)
            }
        }
    }
}
