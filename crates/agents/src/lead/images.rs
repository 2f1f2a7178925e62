//! Images that a prompt names by their path.

use claw_providers::message::{Block, Image};
use claw_tools::builtin::read_image;
use std::path::Path;

/// Endings that are looked at.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];
/// Images of one prompt.
const MOST: usize = 10;

/// The blocks of a prompt: its text, then the images whose files it names (`shot.png`, `@shot.png`, in quotes or not);
/// and what is to be said of those that could not be taken. A word that names no file is a word.
pub fn with_images(text: &str, folder: &Path) -> (Vec<Block>, Vec<String>) {
    let mut blocks = vec![Block::Text { text: text.to_owned() }];
    let mut notes = Vec::new();
    let mut seen = Vec::new();
    for word in text.split_whitespace() {
        let name = word.trim_matches(['"', '\'', '`', '(', ')', '<', '>', ',', ';']).trim_start_matches('@');
        let name = name.trim_end_matches(['.', ':', '!', '?']);
        let is_image = Path::new(name)
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| ENDINGS.contains(&ending.to_lowercase().as_str()));
        let path = folder.join(name);
        if !is_image || seen.contains(&path) || !path.is_file() {
            continue;
        }
        if seen.len() >= MOST {
            notes.push(format!("only the first {MOST} images of a prompt are sent"));
            break;
        }
        match read_image(&path) {
            Ok((media_type, data)) => blocks.push(Block::Image(Image { media_type, data })),
            Err(error) => notes.push(format!("not sent: {error}")),
        }
        seen.push(path);
    }
    (blocks, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::create;

    #[test]
    fn a_prompt_carries_the_images_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        create(&folder.path().join("a.png"), b"\x89PNG....").unwrap();
        create(&folder.path().join("b.jpg"), b"no image").unwrap();
        let (blocks, notes) = with_images("look at @a.png, `a.png` and b.jpg; not at c.png.", folder.path());
        assert!(
            matches!(&blocks[..], [Block::Text { .. }, Block::Image(image)] if image.media_type == "image/png")
        );
        assert!(notes.len() == 1 && notes[0].contains("b.jpg"), "{notes:?}");
    }
}
