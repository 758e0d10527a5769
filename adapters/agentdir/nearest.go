package agentdir

import "strings"

// nearest returns the name that was probably meant, or "".
func nearest(wanted string, names []string) string {
	wanted = strings.ToLower(wanted)
	best, least := "", 3
	for _, name := range names {
		n := distance(wanted, strings.ToLower(name))
		if len(wanted) > 2 && strings.HasPrefix(strings.ToLower(name), wanted) {
			n = min(n, 2) // "plan" for planner
		}
		if n < least && n < len([]rune(name)) {
			best, least = name, n
		}
	}
	return best
}

// distance is how many characters have to be put in, left out, replaced or swapped with
// their neighbour to make b from a.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before []int // two rows up
	above := make([]int, len(t)+1)
	for j := range above {
		above[j] = j
	}
	for i := range s {
		row := make([]int, len(t)+1)
		row[0] = i + 1
		for j := range t {
			other := 1
			if s[i] == t[j] {
				other = 0
			}
			row[j+1] = min(above[j+1]+1, row[j]+1, above[j]+other)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above = above, row
	}
	return above[len(t)]
}
