//! The tools that come with claw, one file each.

mod bash;
mod edit_file;
mod glob_search;
mod grep_search;
mod image;
mod read_file;
mod structured_output;
#[cfg(test)]
mod testing;
mod walk;
mod write_file;

pub use bash::Bash;
pub use edit_file::EditFile;
pub use glob_search::GlobSearch;
pub use grep_search::GrepSearch;
pub use image::read_image;
pub use read_file::ReadFile;
pub use structured_output::{BadSchema, StructuredOutput};
pub use write_file::WriteFile;
