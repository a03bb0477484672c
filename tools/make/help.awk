# Prints the help page from the comments of the Makefile: "##@ heading", "## text", and
# "goal: ... ## what it does".
/^##@ / { printf "\n%s\n", substr($0, 5); next }
/^## /  { printf "  %s\n", substr($0, 4); next }
/^[a-z]+:.* ## / {
	goal = $0; sub(/:.*/, "", goal)
	text = $0; sub(/.* ## /, "", text)
	printf "  %-10s %s\n", goal, text
}
