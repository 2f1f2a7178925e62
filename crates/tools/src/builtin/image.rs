//! Images as the model gets them: told by their first bytes, base64.

use crate::error::ToolError;
use crate::output::ToolOutput;
use serde_json::json;
use std::path::Path;

/// Bytes of an image; services take little more.
const MOST_BYTES: usize = 3_750_000;

/// The media type, if the bytes are an image that models know.
pub(super) fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    let webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice());
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ if webp => Some("image/webp"),
        _ => None,
    }
}

pub(super) fn output(path: &Path, kind: &str, bytes: &[u8]) -> Result<ToolOutput, ToolError> {
    if bytes.len() > MOST_BYTES {
        let text =
            format!("{} is an image of {} bytes; at most {MOST_BYTES} are sent", path.display(), bytes.len());
        return Err(ToolError::Refused(text));
    }
    Ok(ToolOutput {
        text: format!("[{kind}, {} bytes]", bytes.len()),
        data: json!({"file": {"filePath": path, "type": kind, "originalSize": bytes.len()}}),
        images: vec![(kind.to_owned(), base64(bytes))],
        ..ToolOutput::default()
    })
}

/// An image that a person named: its media type and its bytes in base64.
///
/// # Errors
/// It cannot be read, is no image that models know, or is too large for them.
pub fn read_image(path: &Path) -> Result<(String, String), ToolError> {
    let (file, _) = crate::files::kind::open_regular(path)?;
    let mut bytes = Vec::new();
    let most = MOST_BYTES as u64 + 1;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, most), &mut bytes)
        .map_err(|source| ToolError::Io { path: path.to_owned(), source })?;
    let refused = |why: String| ToolError::Refused(format!("{} {why}", path.display()));
    let kind = kind_of(&bytes).ok_or_else(|| refused("is no PNG, JPEG, GIF or WebP image".to_owned()))?;
    if bytes.len() > MOST_BYTES {
        return Err(refused(format!("is larger than {MOST_BYTES} bytes, the most that is sent")));
    }
    Ok((kind.to_owned(), base64(&bytes)))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let used = digit <= chunk.len();
            let at = (word >> (18 - 6 * digit)) as usize & 63;
            text.push(if used { char::from(DIGITS[at]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_its_end() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
