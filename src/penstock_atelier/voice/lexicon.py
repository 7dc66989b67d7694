"""Words that are not spoken as they are written, and the names of letters."""

from collections.abc import Mapping
from functools import cache

_WORDS = """
a=AX the=DH AX and=AE N D of=AX V to=T UW in=IH N is=IH Z was=W AA Z are=AA R were=W ER be=B IY been=B IH N
have=HH AE V has=HH AE Z had=HH AE D do=D UW does=D AH Z done=D AH N did=D IH D says=S EH Z said=S EH D go=G OW
goes=G OW Z gone=G AO N one=W AH N once=W AH N S two=T UW four=F AO R eight=EY T i=AY you=Y UW your=Y AO R
yours=Y AO R Z he=HH IY she=SH IY we=W IY they=DH EY them=DH EH M their=DH EH R there=DH EH R these=DH IY Z
those=DH OW Z this=DH IH S that=DH AE T than=DH AE N then=DH EH N though=DH OW through=TH R UW thorough=TH ER OW
who=HH UW whose=HH UW Z whom=HH UW M what=W AH T when=W EH N where=W EH R which=W IH CH why=W AY how=HH AW my=M AY
me=M IY his=HH IH Z her=HH ER our=AW ER us=AH S it=IH T its=IH T S as=AE Z at=AE T by=B AY for=F AO R from=F R AH M
on=AA N or=AO R not=N AA T no=N OW now=N AW know=N OW known=N OW N knows=N OW Z so=S OW some=S AH M
something=S AH M TH IH NG sometimes=S AH M T AY M Z come=K AH M comes=K AH M Z coming=K AH M IH NG become=B IH K AH M
welcome=W EH L K AX M give=G IH V given=G IH V AX N live=L IH V lives=L IH V Z love=L AH V above=AX B AH V move=M UW V
prove=P R UW V lose=L UW Z whole=HH OW L could=K UH D would=W UH D should=SH UH D can=K AE N will=W IH L
very=V EH R IY many=M EH N IY any=EH N IY every=EH V R IY other=AH DH ER another=AX N AH DH ER mother=M AH DH ER
brother=B R AH DH ER father=F AA DH ER people=P IY P AX L woman=W UH M AX N women=W IH M IH N water=W AO T ER
world=W ER L D word=W ER D words=W ER D Z work=W ER K good=G UH D look=L UH K book=B UH K foot=F UH T food=F UW D
moon=M UW N blood=B L AH D flood=F L AH D door=D AO R floor=F L AO R great=G R EY T break=B R EY K steak=S T EY K
head=HH EH D dead=D EH D bread=B R EH D read=R IY D ready=R EH D IY heart=HH AA R T hear=HH IH R heard=HH ER D
bear=B EH R wear=W EH R tear=T EH R early=ER L IY learn=L ER N earth=ER TH enough=IH N AH F rough=R AH F tough=T AH F
cough=K AO F laugh=L AE F thought=TH AO T bought=B AO T caught=K AO T daughter=D AO T ER night=N AY T light=L AY T
right=R AY T high=HH AY eye=AY eyes=AY Z height=HH AY T weight=W EY T neighbor=N EY B ER answer=AE N S ER
island=AY L AX N D listen=L IH S AX N often=AO F AX N castle=K AE S AX L half=HH AE F calm=K AA M walk=W AO K
talk=T AO K hour=AW ER hours=AW ER Z honest=AA N IH S T iron=AY ER N friend=F R EH N D friends=F R EH N D Z
busy=B IH Z IY business=B IH Z N AX S minute=M IH N IH T minutes=M IH N IH T S second=S EH K AX N D
seconds=S EH K AX N D Z machine=M AX SH IY N police=P AX L IY S sugar=SH UH G ER sure=SH UH R ocean=OW SH AX N
special=S P EH SH AX L science=S AY AX N S quick=K W IH K brown=B R AW N fox=F AA K S jumps=JH AH M P S over=OW V ER
lazy=L EY Z IY dog=D AO G hello=HH EH L OW hi=HH AY please=P L IY Z thank=TH AE NG K thanks=TH AE NG K S
sorry=S AA R IY yes=Y EH S okay=OW K EY today=T AX D EY tomorrow=T AX M AA R OW yesterday=Y EH S T ER D EY
monday=M AH N D EY tuesday=T UW Z D EY wednesday=W EH N Z D EY thursday=TH ER Z D EY friday=F R AY D EY
saturday=S AE T ER D EY sunday=S AH N D EY january=JH AE N Y UW EH R IY february=F EH B R UW EH R IY april=EY P R AX L
august=AO G AX S T zero=Z IH R OW three=TH R IY five=F AY V seven=S EH V AX N nine=N AY N ten=T EH N
eleven=IH L EH V AX N twelve=T W EH L V twenty=T W EH N T IY hundred=HH AH N D R AX D thousand=TH AW Z AX N D
million=M IH L Y AX N dollar=D AA L ER dollars=D AA L ER Z percent=P ER S EH N T number=N AH M B ER point=P OY N T
o'clock=AX K L AA K only=OW N L IY also=AO L S OW always=AO L W EY Z almost=AO L M OW S T all=AO L small=S M AO L
call=K AO L fall=F AO L wall=W AO L little=L IH T AX L middle=M IH D AX L able=EY B AX L table=T EY B AX L
simple=S IH M P AX L example=IH G Z AE M P AX L again=AX G EH N against=AX G EH N S T about=AX B AW T
around=AX R AW N D away=AX W EY ago=AX G OW along=AX L AO NG because=B IH K AO Z before=B IH F AO R begin=B IH G IH N
between=B IH T W IY N behind=B IH HH AY N D into=IH N T UW onto=AA N T UW until=AX N T IH L under=AH N D ER
upon=AX P AA N while=W AY L without=W IH DH AW T with=W IH TH picture=P IH K CH ER nature=N EY CH ER
future=F Y UW CH ER video=V IH D IY OW audio=AO D IY OW image=IH M IH JH images=IH M IH JH IH Z model=M AA D AX L
models=M AA D AX L Z voice=V OY S voices=V OY S IH Z music=M Y UW Z IH K sound=S AW N D speech=S P IY CH
gateway=G EY T W EY penstock=P EH N S T AA K computer=K AX M P Y UW T ER data=D EY T AX file=F AY L user=Y UW Z ER
use=Y UW Z used=Y UW Z D open=OW P AX N test=T EH S T error=EH R ER server=S ER V ER provider=P R AX V AY D ER
money=M AH N IY month=M AH N TH front=F R AH N T son=S AH N house=HH AW S home=HH OW M country=K AH N T R IY
young=Y AH NG touch=T AH CH double=D AH B AX L trouble=T R AH B AX L put=P UH T push=P UH SH pull=P UH L full=F UH L
bull=B UH L beautiful=B Y UW T IH F AX L color=K AH L ER area=EH R IY AX idea=AY D IY AX real=R IY L really=R IY L IY
family=F AE M L IY different=D IH F R AX N T evening=IY V N IH NG want=W AA N T watch=W AA CH wash=W AA SH war=W AO R
warm=W AO R M don't=D OW N T won't=W OW N T can't=K AE N T isn't=IH Z AX N T i'm=AY M i'll=AY L it's=IH T S
that's=DH AE T S let's=L EH T S you're=Y AO R we're=W IH R they're=DH EH R mister=M IH S T ER thirteen=TH ER T IY N
fourteen=F AO R T IY N fifteen=F IH F T IY N sixteen=S IH K S T IY N seventeen=S EH V AX N T IY N eighteen=EY T IY N
nineteen=N AY N T IY N thirty=TH ER T IY forty=F AO R T IY fifty=F IH F T IY sixty=S IH K S T IY
seventy=S EH V AX N T IY eighty=EY T IY ninety=N AY N T IY ninth=N AY N TH first=F ER S T third=TH ER D
billion=B IH L Y AX N oh=OW euro=Y UH R OW euros=Y UH R OW Z missis=M IH S IH Z miz=M IH Z doctor=D AA K T ER
professor=P R AX F EH S ER etcetera=EH T S EH T R AX
"""
_LETTERS = """
a=EY b=B IY c=S IY d=D IY e=IY f=EH F g=JH IY h=EY CH i=AY j=JH EY k=K EY l=EH L m=EH M n=EH N o=OW p=P IY q=K Y UW
r=AA R s=EH S t=T IY u=Y UW v=V IY w=D AH B AX L Y UW x=EH K S y=W AY z=Z IY
"""


@cache
def words() -> Mapping[str, tuple[str, ...]]:
    """The phonemes of words that the rules of spelling would get wrong."""
    return _read(_WORDS)


@cache
def letters() -> Mapping[str, tuple[str, ...]]:
    """The names of the letters, for what cannot be spoken as a word."""
    return _read(_LETTERS)


def _read(table: str) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    word = ""
    for part in table.split():
        name, equals, first = part.partition("=")
        if equals:
            word = name
            found[word] = [first]
        else:
            found[word].append(part)
    return {name: tuple(phonemes) for name, phonemes in found.items()}
