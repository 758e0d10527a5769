// Package headlesstest is a scripted agent: a small program that speaks pi's RPC mode on
// stdin and stdout, and does with each prompt what a script says. With it a test or an
// example runs real child processes on a machine that has nothing but Go: the program
// starts itself again as the agent.
//
//	func TestMain(m *testing.M) {
//		headlesstest.Main(func(t *headlesstest.Turn) { // does not return in the agent
//			t.Think(100 * time.Millisecond)
//			t.Say("it is decided in retry.go")
//		})
//		os.Exit(m.Run())
//	}
//
//	func TestX(t *testing.T) {
//		h := headless.New(headless.Options{Command: headlesstest.Command()})
//		...
//
// With [Obey] as the script, the prompts themselves say what the agent does.
package headlesstest
