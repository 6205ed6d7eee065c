"""What is told of compiling: several libraries, begun by several threads, and one note."""

from threading import Thread

from hiresx.base.notify import notifications_to, notify


def test_one_note_for_several_compilations():
    heard: list[str] = []
    for _ in range(2):
        with notifications_to(heard.append):
            threads = [Thread(target=notify, args=("compiling",)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            notify("something else")
    notify("unheard")
    assert heard == ["compiling", "something else"] * 2
