//! Walking a folder for the searches: ignore files honoured, nothing but regular files, bounded, cancellable.

use crate::error::ToolError;
use crate::files::kind;
use crate::tool::Hidden;
use claw_kernel::cancel::CancelToken;
use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder};
use std::path::Path;

/// Entries that one search looks at.
const MOST_ENTRIES: usize = 1_000_000;

/// What is walked.
pub(super) struct Walk<'r> {
    pub(super) root: &'r Path,
    pub(super) globs: Option<Override>,
    pub(super) types: Option<Types>,
    /// Levels below the root; none: all.
    pub(super) depth: Option<usize>,
    /// Whether folders are given, too.
    pub(super) folders: bool,
    /// Passed over, with all that lies in it.
    pub(super) hidden: Hidden,
}

impl Walk<'_> {
    /// The regular files in a stable order, hidden ones too, without `.git` and what ignore files name. Symlinks are
    /// not followed; `/proc/<pid>` is not entered.
    pub(super) fn entries(self) -> impl Iterator<Item = DirEntry> {
        let mut walk = WalkBuilder::new(self.root);
        walk.hidden(false).require_git(false).parents(true).follow_links(false).sort_by_file_name(Ord::cmp);
        walk.max_depth(self.depth);
        if let Some(globs) = self.globs {
            walk.overrides(globs);
        }
        if let Some(types) = self.types {
            walk.types(types);
        }
        let hidden = self.hidden;
        walk.filter_entry(move |entry| {
            entry.file_name() != ".git"
                && !hidden.hides(entry.path())
                && !kind::is_of_a_process(entry.path())
                && has_plain_ignore_files(entry)
        });
        if !self.root.ancestors().all(are_plain) {
            // At and above the root the walker opens such files before anything is asked: then it reads none at all.
            walk.parents(false).ignore(false).git_ignore(false).git_exclude(false).git_global(false);
        }
        walk.build().take(MOST_ENTRIES).filter_map(Result::ok).filter(move |entry| {
            entry
                .file_type()
                .is_some_and(|kind| kind.is_file() || (self.folders && kind.is_dir() && entry.depth() > 0))
        })
    }
}

/// Files that the walker opens by itself, by plain open.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
/// Larger ones are no lists of patterns.
const MOST_IGNORE_BYTES: u64 = 1 << 20;

/// A folder whose ignore file is a pipe, a device or huge is not entered: opening it could last for ever.
fn has_plain_ignore_files(entry: &DirEntry) -> bool {
    !entry.file_type().is_some_and(|kind| kind.is_dir()) || are_plain(entry.path())
}

fn are_plain(folder: &Path) -> bool {
    IGNORE_FILES.iter().all(|name| match folder.join(name).metadata() {
        Ok(meta) => meta.is_file() && meta.len() <= MOST_IGNORE_BYTES,
        Err(_) => true,
    })
}

/// Ends a search that nobody waits for.
pub(super) fn go_on(cancel: &CancelToken) -> Result<(), ToolError> {
    if cancel.is_cancelled() { Err(ToolError::Cancelled) } else { Ok(()) }
}
