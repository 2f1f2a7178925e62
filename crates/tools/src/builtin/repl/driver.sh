exec 9<&0 </dev/null
claw_mark=$1
shift
while IFS= read -r -d '' -u 9 claw_code; do
  eval "$claw_code" 9<&-
  claw_word=$?
  printf '%s\n' "$claw_mark" >&2
  printf '%s%s\n' "$claw_mark" "$claw_word"
done
